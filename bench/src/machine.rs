//! What the figures were taken on.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::server::output;
use crate::statistics::median;

pub(crate) fn describe(folder: &Path) -> Vec<(&'static str, String)> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    let cpu = read("/proc/cpuinfo");
    let memory = field(&read("/proc/meminfo"), "MemTotal").trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let rustc = output(Command::new("rustc").arg("--version")).unwrap_or_else(|_| "unknown".to_owned());
    let sync = sync_micros(folder).map_or_else(|_| "unknown".to_owned(), |micros| format!("{micros:.0} µs"));
    vec![
        ("processor", format!("{}, {cores} cores", field(&cpu, "model name"))),
        ("memory", format!("{:.0} GB", memory / 1e6)),
        ("kernel", read("/proc/sys/kernel/osrelease").trim().to_owned()),
        ("fsync of 4 KiB, median", sync),
        ("compiler", rustc),
    ]
}

/// What it costs to have a page on the disk for sure: durable writes cannot be faster than this, and absolute figures of
/// writes do not carry to another disk.
fn sync_micros(folder: &Path) -> std::io::Result<f64> {
    let mut file: File = tempfile::tempfile_in(folder)?;
    let page = [7; 4096];
    for _ in 0..256 {
        file.write_all(&page)?;
    }
    file.sync_all()?;
    let mut times = Vec::new();
    for n in 0..200 {
        let begun = Instant::now();
        file.write_all_at(&page, (n % 256) * 4096)?;
        file.sync_data()?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(times))
}
