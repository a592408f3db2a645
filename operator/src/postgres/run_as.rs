//! Who Postgres runs as: this user, or an unprivileged one when this user is root.

use std::{
    fs::{self, Metadata},
    io,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
};

use nix::unistd::{Gid, Uid, User, chown, geteuid};

use super::EmbeddedError;

/// Users that root hands Postgres to, the first that exists.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

#[derive(Debug, Clone)]
pub(super) struct RunAs {
    /// None: this process's own user.
    other: Option<User>,
}

impl RunAs {
    pub fn choose() -> Result<Self, EmbeddedError> {
        if !geteuid().is_root() {
            return Ok(Self { other: None });
        }
        UNPRIVILEGED
            .iter()
            .find_map(|name| User::from_name(name).ok().flatten())
            .map(|user| Self { other: Some(user) })
            .ok_or(EmbeddedError::NoUser)
    }

    pub fn is_other(&self) -> bool {
        self.other.is_some()
    }

    pub fn uid(&self) -> Uid {
        self.other.as_ref().map_or_else(geteuid, |user| user.uid)
    }

    /// Makes a child run as this user. Its supplementary groups are dropped with it.
    pub fn apply(&self, command: &mut Command) {
        if let Some(user) = &self.other {
            command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
        }
    }

    /// Gives a file or folder to this user.
    pub fn own(&self, path: &Path) -> io::Result<()> {
        match &self.other {
            Some(user) => Ok(chown(path, Some(user.uid), Some(user.gid))?),
            None => Ok(()),
        }
    }

    /// The first folder on the way to `path` that this user cannot pass, if there is one.
    pub fn obstacle(&self, path: &Path) -> Option<PathBuf> {
        let user = self.other.as_ref()?;
        path.ancestors()
            .skip(1)
            .filter(|ancestor| !ancestor.as_os_str().is_empty())
            .filter(|ancestor| {
                fs::metadata(ancestor).is_ok_and(|m| !may_enter(&m, user.uid, user.gid))
            })
            .last()
            .map(Path::to_path_buf)
    }

    pub fn name(&self) -> String {
        self.other
            .as_ref()
            .map_or_else(|| self.uid().to_string(), |user| user.name.clone())
    }
}

fn may_enter(folder: &Metadata, uid: Uid, gid: Gid) -> bool {
    let bit = if folder.uid() == uid.as_raw() {
        0o100
    } else if folder.gid() == gid.as_raw() {
        0o010
    } else {
        0o001
    };
    folder.mode() & bit != 0
}
