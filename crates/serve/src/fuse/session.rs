//! The channels of a mounted file, of which a second process holds copies: a server that is killed
//! leaves the connection open, and its successor goes on with what was not answered.
//!
//! 1. Each channel is held outside before it is served. If a channel that only the server holds
//!    went with it, the kernel would end its unanswered requests with an error (seen: 16 in 20
//!    kills).
//! 2. The successor takes all channels back, makes those that are missing, and asks the kernel for
//!    the unanswered requests of all of them before it reads any.
//!
//! Before Linux 6.9 the kernel does not send them again: then those who wait for one wait for good.

use super::channel::{Channel, RootKind};
use crate::holder::HolderClient;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// How a channel is called in the holder; its number follows.
const CHANNEL: &str = "fuse-";

/// What the kernel says to another channel of a descriptor without connection: `EINVAL`, or `EPERM`
/// as Linux 6.18 does.
const UNMOUNTED: [i32; 2] = [22, 1];

/// The channels of a connection.
#[derive(Debug)]
pub struct Session {
    /// All of them, each held outside too.
    pub channels: Vec<Channel>,
    /// Another process served them before.
    pub is_successor: bool,
}

impl Session {
    /// Takes the channels that `holder` has, or mounts a new connection over the file `point`, with
    /// `source` as its name; in the end there are `count` channels, at least those of before.
    ///
    /// # Errors
    /// What the kernel says to mounting, to another channel, or, for a successor before Linux 6.9,
    /// to sending requests again; `Other` for a successor whose connection was ended meanwhile.
    pub fn open(
        holder: &HolderClient<'_>,
        point: &Path,
        source: &str,
        count: usize,
    ) -> sys::Result<Self> {
        let held = holder.take_all()?.into_iter().filter(|(name, _)| name.starts_with(CHANNEL));
        let mut channels: Vec<Channel> = held.map(|(_, descriptor)| descriptor.into()).collect();
        if channels.is_empty() {
            let first = Channel::open()?;
            holder.keep(&name(0), first.as_fd())?;
            channels.push(first);
        }
        let is_successor = match channels[0].another() {
            Ok(_) if channels[0].is_ended() => {
                let ended = io::Error::other("the connection was ended by an unmount or a person");
                return Err(sys::Error::new("take over the served file", ended).at(point));
            }
            Ok(_) => true,
            // One that was killed in between has left a descriptor that is not mounted.
            Err(error) if error.number().is_some_and(|it| UNMOUNTED.contains(&it)) => {
                if let Err(error) = channels[0].mount(point, RootKind::File, source) {
                    // It may have got as far as a connection, which has ended: a successor would
                    // take that one for its own.
                    let _ = holder.forget(&name(0));
                    return Err(error);
                }
                false
            }
            // Says nothing about the channel, which may be in use.
            Err(error) => return Err(error),
        };
        while channels.len() < count {
            let another = channels[0].another()?;
            holder.keep(&name(channels.len()), another.as_fd())?;
            channels.push(another);
        }
        if is_successor {
            channels[0].ask_resend()?;
        }
        Ok(Self { channels, is_successor })
    }
}

fn name(number: usize) -> String {
    format!("{CHANNEL}{number}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holder::Holder;
    use sys::descriptors::socket_pair;

    #[test]
    fn a_mount_that_fails_leaves_no_channel() {
        if let Err(error) = Channel::open() {
            return testkit::skip(error);
        }
        let mut holder = Holder::default();
        let (inner, outer) = socket_pair().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| holder.answer(outer.as_fd()).unwrap());
            let client = HolderClient::new(inner.as_fd());
            // Only its last step needs the point.
            let source = format!("terrace-test-{}", std::process::id());
            let opened = Session::open(&client, Path::new("/no/such/point"), &source, 1);
            assert!(opened.is_err(), "{opened:?}");
            drop(inner);
        });
        assert!(holder.is_empty());
    }
}
