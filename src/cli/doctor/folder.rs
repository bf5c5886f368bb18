//! The data folder: whose it is, who else can look into it, and how much room there is.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat, statvfs};

use super::or_ok;
use crate::cli::files;
use crate::cli::findings::{DATA_FOLDER, FILES, Finding, Grade, kept_files, open_files};
use crate::config::ServeSettings;
use crate::private_files::folder_of;

const DISK: &str = "disk";

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

pub(super) fn examine(settings: &ServeSettings) -> Vec<Finding> {
    let data = &settings.store.data;
    let (open_folder, open_files): (Vec<_>, Vec<_>) =
        open_files(settings).into_iter().partition(|finding| finding.check == DATA_FOLDER);
    let mut all = match std::fs::metadata(data) {
        Ok(found) if found.is_dir() => {
            let mut wrong: Vec<_> = not_ours(data, found.uid()).into_iter().collect();
            wrong.extend(not_writable(data));
            wrong.extend(open_folder);
            or_ok(wrong, DATA_FOLDER, &format!("{} is readable by this user only", data.display()))
        }
        Ok(_) => {
            let message = format!("{} is not a folder", data.display());
            vec![Finding::fail(
                DATA_FOLDER,
                message,
                "move it away, or give another folder with --data or UNIONHALL_DATA",
            )]
        }
        Err(error) => vec![absent(data, &error)],
    };
    let mut wrong = of_others(settings);
    wrong.extend(open_files);
    all.extend(or_ok(wrong, FILES, "secret files are readable by their owner only"));
    all.extend(room(settings));
    all
}

fn absent(data: &Path, error: &std::io::Error) -> Finding {
    match error.kind() {
        ErrorKind::NotFound => Finding::warn(
            DATA_FOLDER,
            format!("{} is not there", data.display()),
            "the first start makes it; if there are records already, give their folder with --data or UNIONHALL_DATA",
        ),
        ErrorKind::PermissionDenied => Finding::of_error(DATA_FOLDER, Grade::Fail, &files::denied(data)),
        _ => Finding::fail(
            DATA_FOLDER,
            format!("cannot look at {}: {error}", data.display()),
            "give another with --data or UNIONHALL_DATA",
        ),
    }
}

/// Root may do everything, but what it makes there is root's, and the service cannot read it.
fn not_ours(data: &Path, owner: u32) -> Option<Finding> {
    let user = rustix::process::geteuid();
    if owner == user.as_raw() {
        return None;
    }
    let data = data.display();
    let message = format!("{data} belongs to user {owner}, and this is user {user}", user = user.as_raw());
    let fix = format!("run this as the user of the service, with sudo -u '#{owner}', or chown -R the folder");
    Some(if user.is_root() {
        Finding::warn(DATA_FOLDER, message, fix)
    } else {
        Finding::fail(DATA_FOLDER, message, fix)
    })
}

fn not_writable(folder: &Path) -> Option<Finding> {
    let error = accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).err()?;
    let error = std::io::Error::from(error);
    let message = format!("{} cannot be written: {error}", folder.display());
    let fix =
        "let this user write there, with chown or chmod u+rwx, and see that its file system is not mounted read-only";
    Some(Finding::fail(DATA_FOLDER, message, fix))
}

/// Files that belong to another than their folder: a command that was run as root left them.
fn of_others(settings: &ServeSettings) -> Vec<Finding> {
    let judge = |(path, what): (PathBuf, &str)| {
        let (file, folder) = (std::fs::metadata(&path).ok()?.uid(), std::fs::metadata(folder_of(&path)).ok()?.uid());
        let shown = path.display();
        let message = format!("{what}, {shown}, belongs to user {file}, and its folder to user {folder}");
        (file != folder).then(|| Finding::fail(FILES, message, format!("chown {folder} {shown}")))
    };
    kept_files(settings).into_iter().filter_map(judge).collect()
}

/// The room where the database is, or will be.
fn room(settings: &ServeSettings) -> Option<Finding> {
    let place = settings.store.disk_folder();
    let (folder, disk) = place
        .ancestors()
        .map(|folder| if folder == Path::new("") { Path::new(".") } else { folder })
        .find_map(|folder| Some((folder, statvfs(folder).ok()?)))?;
    let (free, all) = (disk.f_bavail.saturating_mul(disk.f_frsize), disk.f_blocks.saturating_mul(disk.f_frsize));
    // Some file systems do not count their files.
    let files = (disk.f_files > 0).then_some((disk.f_favail, disk.f_files));
    Some(judge_room(&folder.display().to_string(), free, all, files))
}

fn judge_room(folder: &str, free: u64, all: u64, files: Option<(u64, u64)>) -> Finding {
    let message = format!("{} of {} are free at {folder}", size(free), size(all));
    let fix = "make room, or move the data folder to a larger disk: a full one refuses every sign-up";
    let scarce = |free: u64, all: u64| u128::from(free) * 20 < u128::from(all);
    if free < 100 * MIB {
        return Finding::fail(DISK, message, fix);
    }
    if free < GIB || scarce(free, all) {
        return Finding::warn(DISK, message, fix);
    }
    match files {
        Some((0, _)) => Finding::fail(DISK, format!("no more files can be made at {folder}: it is out of inodes"), fix),
        Some((left, of)) if scarce(left, of) => {
            Finding::warn(DISK, format!("only {left} more files can be made at {folder} (inodes)"), fix)
        }
        _ => Finding::ok(DISK, message),
    }
}

fn size(bytes: u64) -> String {
    if bytes >= GIB { format!("{:.1} GiB", bytes as f64 / GIB as f64) } else { format!("{} MiB", bytes / MIB) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_runs_out_by_bytes_by_share_and_by_files() {
        let grade = |free, all, files| judge_room("data", free, all, files).grade;
        assert_eq!(grade(50 * GIB, 100 * GIB, Some((50, 100))), Grade::Ok);
        assert_eq!(grade(50 * GIB, 100 * GIB, None), Grade::Ok);
        assert_eq!(grade(GIB, 2 * GIB, None), Grade::Ok);
        assert_eq!(grade(GIB - 1, 2 * GIB, None), Grade::Warn);
        assert_eq!(grade(4 * GIB, 100 * GIB, None), Grade::Warn);
        assert_eq!(grade(100 * MIB - 1, 100 * GIB, None), Grade::Fail);
        assert_eq!(grade(50 * GIB, 100 * GIB, Some((4, 100))), Grade::Warn);
        assert_eq!(grade(50 * GIB, 100 * GIB, Some((0, 100))), Grade::Fail);
        assert_eq!(grade(0, 0, None), Grade::Fail);
        assert_eq!(judge_room("data", 1536 * MIB, 2 * GIB, None).message, "1.5 GiB of 2.0 GiB are free at data");
    }
}
