//! The calls to the kernel that a program may make. What is not named does not exist for it, so that what a newer kernel brings is
//! not there either.

use std::collections::BTreeMap;

use nix::libc as sys;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Is, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};

type Syscall = sys::c_long;
type Rules = BTreeMap<Syscall, Vec<SeccompRule>>;

/// Those with arguments that matter are in [`with_conditions`].
#[rustfmt::skip]
const ALLOWED: &[Syscall] = &[
    // Files: which ones is for Landlock to say.
    sys::SYS_read, sys::SYS_write, sys::SYS_readv, sys::SYS_writev, sys::SYS_pread64, sys::SYS_pwrite64, sys::SYS_preadv,
    sys::SYS_pwritev, sys::SYS_preadv2, sys::SYS_pwritev2, sys::SYS_close, sys::SYS_close_range, sys::SYS_openat, sys::SYS_openat2,
    sys::SYS_lseek, sys::SYS_fstat, sys::SYS_newfstatat, sys::SYS_statx, sys::SYS_statfs, sys::SYS_fstatfs, sys::SYS_faccessat,
    sys::SYS_faccessat2, sys::SYS_readlinkat, sys::SYS_getdents64, sys::SYS_getcwd, sys::SYS_chdir, sys::SYS_fchdir,
    sys::SYS_mkdirat, sys::SYS_unlinkat, sys::SYS_renameat, sys::SYS_renameat2, sys::SYS_linkat, sys::SYS_symlinkat,
    sys::SYS_mknodat, sys::SYS_truncate, sys::SYS_ftruncate, sys::SYS_fallocate, sys::SYS_fsync, sys::SYS_fdatasync,
    sys::SYS_copy_file_range, sys::SYS_sendfile, sys::SYS_flock, sys::SYS_fadvise64, sys::SYS_umask, sys::SYS_fchmod,
    sys::SYS_dup, sys::SYS_dup3, sys::SYS_pipe2, sys::SYS_eventfd2, sys::SYS_signalfd4, sys::SYS_ppoll, sys::SYS_pselect6,
    sys::SYS_epoll_create1, sys::SYS_epoll_ctl, sys::SYS_epoll_pwait, sys::SYS_epoll_pwait2,
    // Memory; more of it is in `filters`.
    sys::SYS_brk, sys::SYS_munmap, sys::SYS_mprotect, sys::SYS_mremap, sys::SYS_madvise, sys::SYS_msync,
    sys::SYS_mincore, sys::SYS_membarrier,
    // Processes: they cannot leave their group, so that all of them can be ended.
    sys::SYS_execve, sys::SYS_execveat, sys::SYS_exit, sys::SYS_exit_group, sys::SYS_wait4, sys::SYS_waitid, sys::SYS_getpid,
    sys::SYS_getppid, sys::SYS_gettid, sys::SYS_getpgid, sys::SYS_getsid, sys::SYS_getuid, sys::SYS_geteuid, sys::SYS_getgid,
    sys::SYS_getegid, sys::SYS_getresuid, sys::SYS_getresgid, sys::SYS_getgroups, sys::SYS_capget, sys::SYS_set_tid_address,
    sys::SYS_set_robust_list, sys::SYS_rseq, sys::SYS_futex, sys::SYS_futex_waitv, sys::SYS_sched_yield,
    sys::SYS_sched_getaffinity, sys::SYS_sched_getparam, sys::SYS_sched_getscheduler, sys::SYS_sched_get_priority_max,
    sys::SYS_sched_get_priority_min, sys::SYS_getcpu, sys::SYS_getpriority, sys::SYS_getrusage, sys::SYS_times, sys::SYS_getrlimit,
    sys::SYS_setrlimit,
    // Signals; whose they may be is for Landlock to say, where it can.
    sys::SYS_rt_sigaction, sys::SYS_rt_sigprocmask, sys::SYS_rt_sigreturn, sys::SYS_rt_sigpending, sys::SYS_rt_sigsuspend,
    sys::SYS_rt_sigtimedwait, sys::SYS_sigaltstack, sys::SYS_restart_syscall,
    // Time.
    sys::SYS_clock_gettime, sys::SYS_clock_getres, sys::SYS_clock_nanosleep, sys::SYS_nanosleep, sys::SYS_gettimeofday,
    sys::SYS_setitimer, sys::SYS_getitimer, sys::SYS_timer_create, sys::SYS_timer_settime, sys::SYS_timer_gettime,
    sys::SYS_timer_getoverrun, sys::SYS_timer_delete, sys::SYS_timerfd_create, sys::SYS_timerfd_settime, sys::SYS_timerfd_gettime,
    // Pairs of sockets, by which event loops wake themselves; others cannot be made.
    sys::SYS_recvfrom, sys::SYS_recvmsg, sys::SYS_shutdown, sys::SYS_getsockopt, sys::SYS_setsockopt, sys::SYS_getsockname,
    sys::SYS_getpeername,
    // The machine.
    sys::SYS_uname, sys::SYS_sysinfo, sys::SYS_getrandom,
];

/// What newer processors do without.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const ALLOWED_HERE: &[Syscall] = &[
    sys::SYS_open, sys::SYS_creat, sys::SYS_stat, sys::SYS_lstat, sys::SYS_access, sys::SYS_readlink, sys::SYS_getdents,
    sys::SYS_mkdir, sys::SYS_rmdir, sys::SYS_unlink, sys::SYS_rename, sys::SYS_link, sys::SYS_symlink, sys::SYS_mknod, sys::SYS_dup2,
    sys::SYS_pipe, sys::SYS_fork, sys::SYS_vfork, sys::SYS_poll, sys::SYS_select, sys::SYS_epoll_create, sys::SYS_epoll_wait,
    sys::SYS_eventfd, sys::SYS_signalfd, sys::SYS_pause, sys::SYS_alarm, sys::SYS_time, sys::SYS_getpgrp, sys::SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_HERE: &[Syscall] = &[];

const SIGNALS: &[Syscall] = &[sys::SYS_kill, sys::SYS_tkill, sys::SYS_tgkill];

/// What is there and not permitted. They would not exist either if they were not named, but programs say it better so.
#[rustfmt::skip]
const REFUSED: &[Syscall] = &[
    sys::SYS_socket, sys::SYS_connect, sys::SYS_bind, sys::SYS_listen, sys::SYS_accept, sys::SYS_accept4, sys::SYS_sendmsg,
    sys::SYS_sendmmsg, sys::SYS_ptrace, sys::SYS_process_vm_readv, sys::SYS_process_vm_writev, sys::SYS_pidfd_open,
    sys::SYS_pidfd_getfd, sys::SYS_pidfd_send_signal, sys::SYS_rt_sigqueueinfo, sys::SYS_rt_tgsigqueueinfo, sys::SYS_kcmp,
    sys::SYS_setsid, sys::SYS_setpgid, sys::SYS_setpriority, sys::SYS_sched_setscheduler, sys::SYS_sched_setattr, sys::SYS_ioprio_set,
    sys::SYS_unshare, sys::SYS_setns, sys::SYS_mount, sys::SYS_umount2, sys::SYS_pivot_root, sys::SYS_chroot, sys::SYS_move_mount,
    sys::SYS_open_tree, sys::SYS_fsopen, sys::SYS_setuid, sys::SYS_setgid, sys::SYS_setreuid, sys::SYS_setregid, sys::SYS_setresuid,
    sys::SYS_setresgid, sys::SYS_setfsuid, sys::SYS_setfsgid, sys::SYS_setgroups, sys::SYS_capset, sys::SYS_bpf,
    sys::SYS_perf_event_open, sys::SYS_userfaultfd, sys::SYS_keyctl, sys::SYS_add_key, sys::SYS_request_key, sys::SYS_io_uring_setup,
    sys::SYS_io_uring_enter, sys::SYS_io_uring_register, sys::SYS_io_setup, sys::SYS_memfd_create, sys::SYS_shmget, sys::SYS_shmat,
    sys::SYS_semget, sys::SYS_msgget, sys::SYS_mq_open, sys::SYS_inotify_init1, sys::SYS_inotify_add_watch, sys::SYS_fanotify_init,
    sys::SYS_name_to_handle_at, sys::SYS_open_by_handle_at, sys::SYS_init_module, sys::SYS_finit_module, sys::SYS_delete_module,
    sys::SYS_kexec_load, sys::SYS_reboot, sys::SYS_swapon, sys::SYS_syslog, sys::SYS_acct, sys::SYS_quotactl, sys::SYS_sethostname,
    sys::SYS_settimeofday, sys::SYS_clock_settime, sys::SYS_adjtimex, sys::SYS_personality, sys::SYS_vhangup,
];

/// Landlock does not keep a program from these on files that are its user's, wherever they are. Copying a file is no reason to fail,
/// so they are said to be done.
const PRETENDED: &[Syscall] = &[sys::SYS_fchmodat, sys::SYS_fchown, sys::SYS_fchownat];
#[cfg(target_arch = "x86_64")]
const PRETENDED_HERE: &[Syscall] =
    &[sys::SYS_chmod, sys::SYS_chown, sys::SYS_lchown, sys::SYS_utime, sys::SYS_utimes, sys::SYS_futimesat];
#[cfg(not(target_arch = "x86_64"))]
const PRETENDED_HERE: &[Syscall] = &[];

/// The same, for what not every file system has: it is said not to.
#[rustfmt::skip]
const UNSUPPORTED: &[Syscall] = &[
    sys::SYS_getxattr, sys::SYS_lgetxattr, sys::SYS_fgetxattr, sys::SYS_listxattr, sys::SYS_llistxattr, sys::SYS_flistxattr,
    sys::SYS_setxattr, sys::SYS_lsetxattr, sys::SYS_fsetxattr, sys::SYS_removexattr, sys::SYS_lremovexattr, sys::SYS_fremovexattr,
];

/// All that is needed to compute, and to read and write what is open already. A new thread is in [`restrict_to_computing`].
#[rustfmt::skip]
const COMPUTING: &[Syscall] = &[
    sys::SYS_read, sys::SYS_write, sys::SYS_readv, sys::SYS_writev, sys::SYS_close, sys::SYS_lseek, sys::SYS_fstat, sys::SYS_brk,
    sys::SYS_mmap, sys::SYS_munmap, sys::SYS_mprotect, sys::SYS_mremap, sys::SYS_madvise, sys::SYS_exit, sys::SYS_exit_group,
    sys::SYS_getpid, sys::SYS_gettid, sys::SYS_set_robust_list, sys::SYS_rseq, sys::SYS_futex, sys::SYS_sched_yield,
    sys::SYS_sched_getaffinity, sys::SYS_rt_sigaction, sys::SYS_rt_sigprocmask, sys::SYS_rt_sigreturn, sys::SYS_sigaltstack,
    sys::SYS_restart_syscall, sys::SYS_clock_gettime, sys::SYS_clock_nanosleep, sys::SYS_nanosleep, sys::SYS_getrandom,
];

/// Leaves this thread, and those that it starts, nothing but to compute.
pub(super) fn restrict_to_computing() -> Result<(), seccompiler::Error> {
    let mut allowed = always(&[COMPUTING]);
    // Other processes are made by the same call. The one that came after it takes its flags from memory, which no filter can read.
    let thread = u64_of(sys::CLONE_THREAD);
    allowed.insert(sys::SYS_clone, vec![SeccompRule::new(vec![when(0, Is::MaskedEq(thread), thread)?])?]);
    let missing = SeccompAction::Errno(sys::ENOSYS.unsigned_abs());
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let filter: BpfProgram = SeccompFilter::new(allowed, missing, SeccompAction::Allow, arch)?.try_into()?;
    apply_filter(&filter)
}

/// Confines this thread, and what it becomes, for good.
pub(super) fn restrict(scopes_signals: bool) -> Result<(), seccompiler::Error> {
    for filter in filters(scopes_signals)? {
        apply_filter(&filter)?;
    }
    Ok(())
}

/// One for each way to say no: of several the strictest word counts, and the last one lets through what the others decide on. It is
/// last as it does not let through what filters are made with.
fn filters(scopes_signals: bool) -> Result<Vec<BpfProgram>, BackendError> {
    let signals = |asked: bool| if scopes_signals == asked { SIGNALS } else { &[] };
    let mut refused = always(&[REFUSED, signals(false)]);
    // A new namespace, which would bring new rights in it.
    let new = [
        sys::CLONE_NEWNS,
        sys::CLONE_NEWCGROUP,
        sys::CLONE_NEWUTS,
        sys::CLONE_NEWIPC,
        sys::CLONE_NEWUSER,
        sys::CLONE_NEWPID,
        sys::CLONE_NEWNET,
    ];
    let new =
        new.map(u64_of).into_iter().map(|flag| SeccompRule::new(vec![when(0, Is::MaskedEq(flag), flag)?]));
    refused.insert(sys::SYS_clone, new.collect::<Result<_, _>>()?);
    // Memory that is shared may be held by nobody who is seen to hold it.
    let shared = u64_of(sys::MAP_SHARED | sys::MAP_ANONYMOUS);
    refused.insert(sys::SYS_mmap, vec![SeccompRule::new(vec![when(3, Is::MaskedEq(shared), shared)?])?]);
    let mut pretended = always(&[PRETENDED, PRETENDED_HERE]);
    // The time of an open file may be set: it is one that may be written.
    pretended.insert(sys::SYS_utimensat, vec![SeccompRule::new(vec![when(1, Is::Ne, 0)?])?]);
    let unsupported = always(&[UNSUPPORTED]);

    let mut allowed = always(&[ALLOWED, ALLOWED_HERE, signals(true)]);
    for decided in [&refused, &pretended, &unsupported] {
        allowed.extend(decided.keys().map(|call| (*call, Vec::new())));
    }
    allowed.extend(with_conditions()?);
    let errno = |number: sys::c_int| SeccompAction::Errno(number.unsigned_abs());
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    [
        (refused, SeccompAction::Allow, errno(sys::EPERM)),
        (pretended, SeccompAction::Allow, errno(0)),
        (unsupported, SeccompAction::Allow, errno(sys::ENOTSUP)),
        (allowed, errno(sys::ENOSYS), SeccompAction::Allow),
    ]
    .into_iter()
    .map(|(rules, otherwise, action)| SeccompFilter::new(rules, otherwise, action, arch)?.try_into())
    .collect()
}

fn always(calls: &[&[Syscall]]) -> Rules {
    calls.concat().into_iter().map(|call| (call, Vec::new())).collect()
}

/// What is allowed with some arguments. A call may be made when one of its rules holds.
fn with_conditions() -> Result<Rules, BackendError> {
    let any = |argument, values: &[u64]| -> Result<Vec<SeccompRule>, BackendError> {
        values.iter().map(|value| SeccompRule::new(vec![when(argument, Is::Eq, *value)?])).collect()
    };
    Ok(Rules::from([
        // `F_SETOWN` and its like would have the kernel send signals to others.
        (
            sys::SYS_fcntl,
            any(
                1,
                &[
                    sys::F_DUPFD,
                    sys::F_DUPFD_CLOEXEC,
                    sys::F_GETFD,
                    sys::F_SETFD,
                    sys::F_GETFL,
                    sys::F_SETFL,
                    sys::F_GETLK,
                    sys::F_SETLK,
                    sys::F_SETLKW,
                    sys::F_OFD_GETLK,
                    sys::F_OFD_SETLK,
                    sys::F_OFD_SETLKW,
                    sys::F_GETPIPE_SZ,
                ]
                .map(u64_of),
            )?,
        ),
        // Whether it is a terminal, and the like; nothing that changes a device.
        (
            sys::SYS_ioctl,
            any(
                1,
                &[sys::TCGETS, sys::TIOCGWINSZ, sys::FIONREAD, sys::FIONBIO, sys::FIOCLEX, sys::FIONCLEX]
                    .map(wide),
            )?,
        ),
        // A process must stay open to being looked at.
        (
            sys::SYS_prctl,
            any(
                0,
                &[sys::PR_SET_NAME, sys::PR_GET_NAME, sys::PR_GET_DUMPABLE, sys::PR_GET_NO_NEW_PRIVS]
                    .map(u64_of),
            )?,
        ),
        // Only of the process itself.
        (sys::SYS_prlimit64, any(0, &[0])?),
        (sys::SYS_sched_setaffinity, any(0, &[0])?),
        // To nobody but the other end.
        (sys::SYS_sendto, vec![SeccompRule::new(vec![when(4, Is::Eq, 0)?])?]),
        // Of streams: datagrams could be sent to others.
        (
            sys::SYS_socketpair,
            vec![SeccompRule::new(vec![
                when(0, Is::Eq, u64_of(sys::AF_UNIX))?,
                when(1, Is::MaskedEq(0xf), u64_of(sys::SOCK_STREAM))?,
            ])?],
        ),
    ]))
}

fn when(argument: u8, is: Is, value: u64) -> Result<SeccompCondition, BackendError> {
    // Pointers are wide. Of numbers the kernel takes the lower half.
    let width = if matches!(is, Is::Ne) || value == 0 { Width::Qword } else { Width::Dword };
    SeccompCondition::new(argument, width, is, value)
}

/// Its type is not the same in every C library.
#[allow(clippy::unnecessary_cast)]
fn wide(number: sys::Ioctl) -> u64 {
    number as u64
}

fn u64_of(number: sys::c_int) -> u64 {
    u64::from(number.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_call_is_decided_on_twice() {
        let all = [ALLOWED, ALLOWED_HERE, SIGNALS, REFUSED, PRETENDED, PRETENDED_HERE, UNSUPPORTED].concat();
        let conditional: Vec<Syscall> = with_conditions().unwrap().into_keys().collect();
        let every = [all, conditional, vec![sys::SYS_clone, sys::SYS_mmap, sys::SYS_utimensat]].concat();
        let different: BTreeSet<Syscall> = every.iter().copied().collect();
        assert_eq!(different.len(), every.len());
    }

    #[test]
    fn the_filters_fit_into_the_kernel() {
        for scopes_signals in [true, false] {
            for filter in filters(scopes_signals).unwrap() {
                assert!(filter.len() < 4096, "{}", filter.len());
            }
        }
    }
}
