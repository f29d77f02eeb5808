//! Sockets that go from one process to another.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Sockets in one message.
pub(super) const MOST: usize = 3;

/// Sends bytes, at least one, and sockets with them.
pub(super) fn send(channel: impl AsFd, bytes: &[u8], sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut attached = SendAncillaryBuffer::new(&mut space);
    if !attached.push(SendAncillaryMessage::ScmRights(sockets)) {
        return Err(io::Error::other("too many sockets in one message"));
    }
    sendmsg(channel, &[IoSlice::new(bytes)], &mut attached, SendFlags::empty())?;
    Ok(())
}

/// Receives what was sent in one message: so many bytes of `buffer`, and the sockets.
pub(super) fn receive(channel: impl AsFd, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    // No program that is started may inherit them.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let flags = RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let flags = RecvFlags::empty();
    let received = recvmsg(channel, &mut [IoSliceMut::new(buffer)], &mut attached, flags)?;
    let mut sockets = Vec::new();
    for message in attached.drain() {
        if let RecvAncillaryMessage::ScmRights(given) = message {
            sockets.extend(given);
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    for socket in &sockets {
        rustix::io::fcntl_setfd(socket, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok((received.bytes, sockets))
}
