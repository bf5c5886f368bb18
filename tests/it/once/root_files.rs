//! Commands that the operator runs as root beside a service of another user: whatever they make, the service can use.

use std::os::unix::fs::MetadataExt;

use crate::prelude::*;

pub(crate) fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut all = vec![folder.to_owned()];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(walk(&path)),
            false => all.push(path),
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn what_root_makes_is_the_services() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let home = Home::new();
    let command = unprivileged(home.path());
    let server = Server::start_as(command, home, &["--mail", "hold"]);
    let folder = server.data().parent().unwrap().to_owned();
    let root = |arguments: &[&str]| {
        let output = unionhall(&folder).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let key = root(&["keys", "issue", "Acme"]);
    for (n, email) in ["ana@example.com", "ben@example.com"].into_iter().enumerate() {
        server.post("/v1/invite", &key, sign_up(email)).await.good();
        server.confirm(i64::try_from(n).unwrap() + 1).await;
    }
    root(&["members", "erase", "ana@example.com"]);
    root(&["keys", "issue", "Acme", "--test"]);
    root(&["backup", "data/night"]);
    root(&["backup", "beside"]);
    root(&["restore", "beside", "--data", "data/second"]);
    let service = std::fs::metadata(server.data()).unwrap();
    let made = [walk(&server.data()), vec![folder.join("beside")]].concat();
    for name in ["erasures", "sandbox.db", "night", "second/secret", "second/unionhall.db"] {
        assert!(made.contains(&server.data().join(name)), "{name} is not there: {made:?}");
    }
    for path in made {
        let found = std::fs::metadata(&path).unwrap();
        assert_eq!((found.uid(), found.gid()), (service.uid(), service.gid()), "{}", path.display());
        assert_eq!(found.mode() & 0o077, 0, "{}", path.display());
    }
    // A folder that is neither the service's nor in its own is root's business.
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(elsewhere.path(), Some(4242), Some(4242)).unwrap();
    let night = elsewhere.path().join("night");
    root(&["backup", night.to_str().unwrap()]);
    assert_eq!(std::fs::metadata(night).unwrap().uid(), 0, "nobody else is given the records");

    let mut ben = Browser::member(&server, 1, "ben@example.com").await;
    let erased = ben.act("/me/erase", &[]).await;
    assert_eq!(erased.header("location"), "/me/erased", "{}", server.log());
    assert_eq!(std::fs::read_to_string(server.data().join("erasures")).unwrap().lines().count(), 2);
}

/// Who runs as root or as a user of the system got there with sudo, which named them. A person's own account could name anyone.
#[test]
fn the_audit_log_names_who_called_sudo() {
    use std::os::unix::process::CommandExt;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for (user, is_believed) in [(0, true), (999, true), (1000, false), (65_534, false)] {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(folder.path(), Some(user), Some(user)).unwrap();
        // That user may not be let into the folder of the sources.
        let program = folder.path().join("unionhall");
        std::fs::copy(env!("CARGO_BIN_EXE_unionhall"), &program).unwrap();
        let run = |arguments: &[&str]| {
            let mut command = Command::new(&program);
            command
                .env_clear()
                .current_dir(&folder)
                .stdin(Stdio::null())
                .uid(user)
                .gid(user)
                .env("SUDO_USER", "ana")
                .args(arguments);
            let output = command.output().unwrap();
            assert!(output.status.success(), "{user}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        run(&["keys", "issue", "Acme", "--new"]);
        let row: Value = serde_json::from_str(run(&["audit", "--json"]).trim()).unwrap();
        assert_eq!(row["who"] == "ana", is_believed, "{user}: {row}");
    }
}
