//! `unionhall doctor` beside a service that is well, on every store.

use crate::prelude::*;

/// What the doctor found, and whether it ended well.
pub(crate) struct Diagnosis {
    pub lines: Vec<Value>,
    pub output: Output,
}

impl Diagnosis {
    pub(crate) fn of(mut command: Command) -> Self {
        let output = command.args(["doctor", "--json"]).output().unwrap();
        let lines = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        Self { lines, output }
    }

    #[track_caller]
    pub(crate) fn of_check(&self, check: &str) -> Vec<&Value> {
        let found: Vec<_> = self.lines.iter().filter(|line| line["check"] == check).collect();
        assert!(!found.is_empty(), "{check} is not among {:#?}", self.lines);
        found
    }

    /// What is not as it should be. How much room the disk of this machine has is nobody's fault here.
    pub(crate) fn faults(&self) -> Vec<&Value> {
        self.lines.iter().filter(|line| line["state"] != "ok" && line["check"] != "disk").collect()
    }
}

#[test]
fn a_service_that_is_well_is_found_well_while_it_runs() {
    let server = Server::start();
    let mut command = server.command();
    command.env("UNIONHALL_LISTEN", server.address.to_string());
    let found = Diagnosis::of(command);
    let on_postgres = server.records().limits() == "shared";
    // The tests' PostgreSQL waits for no disk, and that is told.
    let known: &[_] = if on_postgres { &["durability"] } else { &[] };
    let faults: Vec<_> = found.faults().iter().map(|line| line["check"].as_str().unwrap().to_owned()).collect();
    assert_eq!(faults, known, "{:#?}", found.lines);
    assert_eq!(found.output.status.code(), Some(0));
    assert_eq!(found.of_check("listen")[0]["message"], format!("the service runs on {}", server.address));
    for check in
        ["settings", "variables", "data folder", "files", "disk", "records", "writes", "secret", "clock", "limits"]
    {
        assert_eq!(found.of_check(check).len(), 1, "{check}");
    }
    if on_postgres {
        assert!(found.of_check("database")[0]["message"].as_str().unwrap().contains("a primary, on this machine"));
        assert_eq!(found.of_check("limits")[0]["message"], "Redis accepts the login and counts");
    }
    // For people: the same lines, each beginning with its state.
    let mut command = server.command();
    command.env("UNIONHALL_LISTEN", server.address.to_string());
    let said = String::from_utf8(command.arg("doctor").output().unwrap().stdout).unwrap();
    let lines: Vec<_> = said.lines().filter(|line| !line.starts_with("     ")).collect();
    assert_eq!(lines.len(), found.lines.len(), "{said}");
    for (line, told) in lines.iter().zip(&found.lines) {
        let begins = format!("{:<5}{}: ", told["state"].as_str().unwrap(), told["check"].as_str().unwrap());
        assert!(line.starts_with(&begins), "{line}: {told}");
    }
}
