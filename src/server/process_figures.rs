//! What the system says of this process, by the names under which monitoring systems look for it, and of what it stands on: the
//! disk and the certificate. Where it says nothing (no `/proc`), nothing is written.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::statvfs;
use rustix::param::clock_ticks_per_second;
use rustix::process::{Resource, getrlimit};

use crate::domain::time::Timestamp;
use crate::http::connection::tls::Tls;
use crate::metrics::Exposition;

/// What a node stands on, and may run out of.
#[derive(Default)]
pub struct NodeResources {
    /// The folder whose disk the records are on.
    pub folder: PathBuf,
    /// The certificate, where the node has one.
    pub tls: Option<Arc<Tls>>,
    /// How often the operator makes a backup.
    pub backup_every: Duration,
    /// Whether the last SIGHUP found a mistake.
    pub reload_failed: Arc<AtomicBool>,
}

impl NodeResources {
    pub(super) fn write(&self, page: &mut Exposition) {
        let help = "How often a backup is made, as UNIONHALL_BACKUP_EVERY says.";
        page.gauge("backup_interval_seconds", help, self.backup_every.as_secs());
        let help = "1 if the last reload (SIGHUP) left a certificate or catalog in use that has a mistake in its file.";
        page.gauge("reload_failed", help, u8::from(self.reload_failed.load(Ordering::Relaxed)));
        if let Ok(disk) = statvfs(&self.folder) {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            page.gauge("disk_free_bytes", "Room on the disk of the data folder.", free);
            let size = disk.f_blocks.saturating_mul(disk.f_frsize);
            page.gauge("disk_size_bytes", "Size of the disk of the data folder.", size);
        }
        if let Some(tls) = &self.tls {
            let help = "When the certificate that is served expires, in seconds since 1970.";
            let end = tls.expires_at().as_millis() / 1000;
            page.gauge("certificate_expiry_timestamp_seconds", help, end);
        }
    }
}

pub(super) fn write(started: Timestamp, page: &mut Exposition) {
    let since = started.as_millis() / 1000;
    page.gauge("process_start_time_seconds", "When the process began, in seconds since 1970.", since);
    if let Some(bytes) = resident_bytes() {
        page.gauge("process_resident_memory_bytes", "Memory that the process holds.", bytes);
    }
    if let Some(seconds) = cpu_seconds() {
        page.counter("process_cpu_seconds_total", "Time of processors that was used.", seconds);
    }
    if let Some(files) = open_files() {
        page.gauge("process_open_fds", "Open files, connections among them.", files);
    }
    if let Some(most) = getrlimit(Resource::Nofile).current {
        page.gauge("process_max_fds", "Files that may be open.", most);
    }
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// Of all threads, in the program and in the system on its behalf.
fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name stands in parentheses and may hold anything; what follows it are numbers.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) as f64 / clock_ticks_per_second() as f64)
}

fn open_files() -> Option<usize> {
    // Looking is one more.
    Some(fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_says_what_this_process_uses() {
        let before = open_files().unwrap();
        let _files: Vec<_> = (0..100).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        // Other tests open files too.
        assert!(open_files().unwrap() > before + 50);
        let held = resident_bytes().unwrap();
        assert!(held > 1 << 20 && held < 1 << 36, "{held}");
        let used = cpu_seconds().unwrap();
        let mut sum = 0_u64;
        while cpu_seconds().unwrap() <= used {
            sum = (0..1_000_000).fold(sum, |sum, n| std::hint::black_box(sum ^ n));
        }
    }
}
