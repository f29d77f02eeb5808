//! What the processes of a program use together, which no limit of the kernel's bounds without rights that a server may not have.

use std::{
    collections::HashSet,
    fs::{self, Metadata},
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use nix::{sys::stat::makedev, unistd::Pid};

use crate::{Limits, Stop};

/// Files and folders that a program may have. It keeps looking at them, and removing them, quick.
const MAX_FILES: usize = 10_000;
/// The unit of `st_blocks`, whatever the file system's own is.
const BLOCK: u64 = 512;

/// What is exceeded, if something is.
pub(super) fn excess(group: Pid, work: &Path, limits: &Limits) -> Option<Stop> {
    let mut memory = 0_u64;
    let mut disk = Disk::default();
    for pid in processes() {
        if Task::of(&process_folder(pid)).is_none_or(|task| task.group != group.as_raw()) {
            continue;
        }
        // The first thread may have ended before the others, and each can have files of its own. The memory is all threads'.
        let mut most = 0;
        for thread in threads(pid) {
            most = most.max(memory_of(&thread));
            // Of one that has just ended there is nothing to see.
            let seen = disk.add_deleted(&thread).and_then(|()| disk.add_mapped(&thread, work));
            if seen.is_err() && Task::of(&thread).is_some_and(|task| !task.is_ending) {
                return Some(Stop::Hidden);
            }
        }
        memory = memory.saturating_add(most);
    }
    if memory > limits.memory {
        return Some(Stop::Memory);
    }
    match disk.add_folder(work) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Some(Stop::Hidden),
        // So deep that its path is too long.
        Err(_) => return Some(Stop::Disk),
        Ok(()) => {}
    }
    (disk.bytes > limits.disk).then_some(Stop::Disk)
}

/// How many processes and threads a user has.
pub(super) fn tasks_of(user: u32) -> u64 {
    let is_theirs = |pid: &i32| fs::metadata(process_folder(*pid)).is_ok_and(|process| process.uid() == user);
    processes().filter(is_theirs).filter_map(|pid| u64::try_from(threads(pid).count()).ok()).sum()
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn process_folder(pid: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

/// What `/proc` has of each thread of a process.
fn threads(pid: i32) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(process_folder(pid).join("task")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// A process or thread, as its `stat` describes it: `proc_pid_stat(5)`.
struct Task {
    group: i32,
    is_ending: bool,
}

impl Task {
    fn of(folder: &Path) -> Option<Self> {
        /// `PF_EXITING` in the kernel's `sched.h`.
        const EXITING: u32 = 0x4;
        let stat = fs::read_to_string(folder.join("stat")).ok()?;
        // The name, in parentheses, may hold anything. The state, which follows it, is field 3 there.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number.checked_sub(3)?);
        let flags: u32 = field(9)?.parse().ok()?;
        Some(Self { group: field(5)?.parse().ok()?, is_ending: flags & EXITING != 0 })
    }
}

/// Bytes of memory that are its own, in use or swapped out: `proc_pid_status(5)`. What it shares with others since it was made of them
/// counts for each.
fn memory_of(folder: &Path) -> u64 {
    let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
    let lines = status.lines().filter_map(|line| line.split_once(':'));
    let own = lines.filter(|(name, _)| matches!(*name, "RssAnon" | "RssShmem" | "VmSwap"));
    let kibibytes =
        own.filter_map(|(_, amount)| amount.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kibibytes.sum::<u64>().saturating_mul(1024)
}

/// A file that is mapped: `proc_pid_maps(5)`.
#[derive(Debug, PartialEq, Eq)]
struct Mapping<'l> {
    /// The addresses, which name it in `map_files`.
    addresses: &'l str,
    /// Device and inode.
    file: (u64, u64),
}

impl<'l> Mapping<'l> {
    /// A file of that folder that was removed. A program writes to files there only.
    fn of_deleted(line: &'l str, folder: &Path) -> Option<Self> {
        let mut fields = line.splitn(6, ' ');
        let addresses = fields.next()?;
        let (device, inode) = (fields.nth(2)?, fields.next()?.parse().ok()?);
        let path = fields.next()?.trim_start().strip_suffix(" (deleted)")?;
        if !Path::new(path).starts_with(folder) {
            return None;
        }
        let (major, minor) = device.split_once(':')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(Self { addresses, file: (makedev(number(major)?, number(minor)?), inode) })
    }
}

#[derive(Default)]
struct Disk {
    bytes: u64,
    counted: HashSet<(u64, u64)>,
}

impl Disk {
    fn add(&mut self, file: &Metadata) {
        if self.counted.insert((file.dev(), file.ino())) {
            self.bytes = self.bytes.saturating_add(file.blocks().saturating_mul(BLOCK));
        }
    }

    /// Adds the files that a thread has open and no folder holds any more.
    fn add_deleted(&mut self, thread: &Path) -> io::Result<()> {
        for entry in fs::read_dir(thread.join("fd"))? {
            if let Ok(file) = fs::metadata(entry?.path())
                && file.is_file()
                && file.nlink() == 0
            {
                self.add(&file);
            }
        }
        Ok(())
    }

    /// Adds the files below a folder that a thread has mapped and no folder holds any more, whether or not it has them open. Who may not see
    /// how large they are, as the kernel shows only a server with rights, takes them for hidden.
    fn add_mapped(&mut self, thread: &Path, work: &Path) -> io::Result<()> {
        let Some(id) = thread.file_name() else { return Ok(()) };
        for line in fs::read_to_string(thread.join("maps"))?.lines() {
            let Some(mapping) = Mapping::of_deleted(line, work) else { continue };
            if self.counted.contains(&mapping.file) {
                continue;
            }
            // The folder of mappings is a process's, and each thread can be asked for as one.
            let file = fs::metadata(Path::new("/proc").join(id).join("map_files").join(mapping.addresses));
            match file {
                Ok(file) => self.add(&file),
                // Unmapped meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn add_folder(&mut self, folder: &Path) -> io::Result<()> {
        let mut folders = vec![folder.to_owned()];
        let mut found = 0;
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let entry = entry?;
                found += 1;
                if found > MAX_FILES {
                    return Err(io::Error::other("too many files"));
                }
                // What has been removed since takes no room.
                let Ok(file) = entry.metadata() else { continue };
                if file.is_dir() {
                    folders.push(entry.path());
                }
                self.add(&file);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b19_removed_files_are_found_where_they_are_mapped() {
        let work = Path::new("/tmp/toolrack-1/files");
        let found = |line| Mapping::of_deleted(line, work);
        let line = "7f0000000000-7f0000400000 rw-s 00001000 fd:0a 123                        /tmp/toolrack-1/files/a b (deleted)";
        let file = (makedev(0xfd, 0x0a), 123);
        assert_eq!(found(line), Some(Mapping { addresses: "7f0000000000-7f0000400000", file }));
        for other in [
            "7f0000000000-7f0000400000 rw-s 00001000 fd:0a 123    /tmp/toolrack-1/files/a",
            "7f0000000000-7f0000400000 r-xp 00001000 fd:0a 123    /usr/lib/libc.so.6 (deleted)",
            "7f0000000000-7f0000400000 rw-s 00000000 00:01 7      /dev/zero (deleted)",
            "7f0000000000-7f0000400000 rw-p 00000000 00:00 0 ",
            "7f0000000000-7f0000400000 rw-p 00000000 00:00 0      [heap]",
            "",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
