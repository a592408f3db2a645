//! The cluster's folder: where everything of it lives, held by one process at a time.
//!
//! ```text
//! <folder>/lock          held while a Fencepost runs the cluster; its process id inside
//!          data/         PGDATA, in place only once it is whole
//!          password      of the database user, readable by its owner only
//!          postgres.log  what Postgres said since its last start
//!          s/            the socket, unless the path is too long for one
//! ```

use std::{
    env,
    fmt::Write as _,
    fs,
    fs::{File, OpenOptions, Permissions, TryLockError},
    io::{self, Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use super::{EmbeddedConfig, EmbeddedError, run_as::RunAs};

/// The database and its user.
pub(super) const DATABASE: &str = "fencepost";
/// Postgres's lock beside its socket `.s.PGSQL.5432`.
pub(super) const SOCKET_LOCK: &str = ".s.PGSQL.5432.lock";
/// A socket's address holds 107 bytes.
const MAX_SOCKET_FOLDER: usize = 107 - SOCKET_LOCK.len() - 1;
/// 24 bytes from the system's generator: nobody guesses them.
const PASSWORD_BYTES: usize = 24;

pub(super) struct Folder {
    root: PathBuf,
    socket: PathBuf,
    /// Holding it is holding the folder: the lock ends with the process, however it ends.
    _lock: File,
}

impl Folder {
    /// Creates the folder if need be, takes its lock and gives it to the user Postgres runs as.
    pub fn open(config: &EmbeddedConfig, run_as: &RunAs) -> Result<Self, EmbeddedError> {
        let path = choose(config, run_as)?;
        let broken = |source| EmbeddedError::Folder {
            path: path.clone(),
            source,
        };
        fs::create_dir_all(&path).map_err(broken)?;
        let root = path.canonicalize().map_err(broken)?;
        if let Some(obstacle) = run_as.obstacle(&root) {
            return Err(EmbeddedError::NotTraversable {
                path: obstacle,
                user: run_as.name(),
            });
        }
        let lock = lock(&root)?;
        let data = root.join("data");
        if let Ok(metadata) = fs::metadata(&data)
            && metadata.uid() != run_as.uid().as_raw()
        {
            return Err(EmbeddedError::WrongOwner {
                path: root,
                owner: metadata.uid(),
            });
        }
        run_as.own(&root).map_err(broken)?;
        fs::set_permissions(&root, Permissions::from_mode(0o700)).map_err(broken)?;
        let socket = socket_folder(&root, run_as)?;
        Ok(Self {
            root,
            socket,
            _lock: lock,
        })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    /// Where a cluster grows until it is whole.
    pub fn unfinished(&self) -> PathBuf {
        self.root.join("data.new")
    }

    pub fn log(&self) -> PathBuf {
        self.root.join("postgres.log")
    }

    pub fn password_file(&self) -> PathBuf {
        self.root.join("password")
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub fn failed(&self, source: io::Error) -> EmbeddedError {
        if source.kind() == io::ErrorKind::StorageFull {
            return EmbeddedError::DiskFull {
                path: self.root.clone(),
            };
        }
        EmbeddedError::Folder {
            path: self.root.clone(),
            source,
        }
    }

    /// Major version of the cluster that is there. None: there is none yet.
    pub fn cluster_version(&self) -> Result<Option<String>, EmbeddedError> {
        match fs::read_to_string(self.data().join("PG_VERSION")) {
            Ok(version) => Ok(Some(version.trim().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Writes a new password for a new cluster.
    pub fn new_password(&self, run_as: &RunAs) -> io::Result<()> {
        let bytes: [u8; PASSWORD_BYTES] = rand::random();
        let password = hex(&bytes);
        let path = self.password_file();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        file.write_all(password.as_bytes())?;
        file.sync_all()?;
        run_as.own(&path)
    }

    /// How a client reaches the database.
    pub fn url(&self) -> Result<String, EmbeddedError> {
        let password = fs::read_to_string(self.password_file()).map_err(|e| self.failed(e))?;
        let mut url = format!(
            "postgres://{DATABASE}:{}@localhost/{DATABASE}?host=",
            password.trim()
        );
        url.extend(url::form_urlencoded::byte_serialize(
            self.socket.as_os_str().as_encoded_bytes(),
        ));
        Ok(url)
    }
}

impl Drop for Folder {
    /// Leaves nothing behind in `/tmp`. The folder is empty once the postmaster has ended.
    fn drop(&mut self) {
        if !self.socket.starts_with(&self.root) {
            let _ = fs::remove_dir(&self.socket);
        }
    }
}

/// The given folder, else `fencepost/<name>` in the cache folder. Root's cache is often below a home
/// that nobody else may enter, and Postgres does not run as root: then the machine's cache.
fn choose(config: &EmbeddedConfig, run_as: &RunAs) -> Result<PathBuf, EmbeddedError> {
    if let Some(given) = &config.data_dir {
        return std::path::absolute(given).map_err(|source| EmbeddedError::Folder {
            path: given.clone(),
            source,
        });
    }
    let named = !config.name.starts_with('.')
        && !config.name.is_empty()
        && config
            .name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if !named {
        return Err(EmbeddedError::BadName {
            name: config.name.clone(),
        });
    }
    let variable = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let cache =
        variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    let folder = |cache: &Path| cache.join("fencepost").join(&config.name);
    match cache {
        Some(cache) if run_as.obstacle(&folder(&cache)).is_none() => Ok(folder(&cache)),
        _ if run_as.is_other() => Ok(folder(Path::new("/var/cache"))),
        Some(cache) => Ok(folder(&cache)),
        None => Err(EmbeddedError::NoHome),
    }
}

fn lock(root: &Path) -> Result<File, EmbeddedError> {
    let broken = |source| EmbeddedError::Folder {
        path: root.to_path_buf(),
        source,
    };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(root.join("lock"))
        .map_err(broken)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // Whoever has just taken the lock may not have written its id yet.
            let _ = (&file).take(20).read_to_string(&mut pid);
            let pid = Some(pid.trim().to_owned()).filter(|pid| !pid.is_empty());
            return Err(EmbeddedError::InUse {
                path: root.to_path_buf(),
                pid: pid.unwrap_or_else(|| "(starting)".to_owned()),
            });
        }
        Err(TryLockError::Error(source)) => return Err(broken(source)),
    }
    let write = |file: &mut File| {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())
    };
    write(&mut file).map_err(broken)?;
    Ok(file)
}

/// `s` in the folder when that is short enough for a socket, else a folder in `/tmp` named after it.
fn socket_folder(root: &Path, run_as: &RunAs) -> Result<PathBuf, EmbeddedError> {
    let inside = root.join("s");
    let path = if inside.as_os_str().len() <= MAX_SOCKET_FOLDER {
        inside
    } else {
        let digest = Sha256::digest(root.as_os_str().as_encoded_bytes());
        let short = hex(&digest[..8]);
        Path::new("/tmp").join(format!("fencepost-{}-{short}", run_as.uid()))
    };
    let broken = |source| EmbeddedError::Folder {
        path: path.clone(),
        source,
    };
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Ok(()) => run_as.own(&path).map_err(broken)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(broken(error)),
    }
    // In /tmp anybody may have been there first: a link or somebody else's folder is refused.
    let metadata = fs::symlink_metadata(&path).map_err(broken)?;
    if !metadata.is_dir() || metadata.uid() != run_as.uid().as_raw() {
        return Err(EmbeddedError::WrongOwner {
            path,
            owner: metadata.uid(),
        });
    }
    Ok(path)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
