//! Finds installed `PostgreSQL` binaries: the variable first, then the packages' folders, then `PATH`.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::EmbeddedError;

/// Names a `bin` folder; nothing else is looked at then.
pub const BINARIES_VARIABLE: &str = "FENCEPOST_PG_BIN";

/// Where packages put a folder a major version: Debian and Ubuntu, Fedora and RHEL, Homebrew.
const PACKAGED: [(&str, &str); 3] = [
    ("/usr/lib/postgresql", ""),
    ("/usr", "pgsql-"),
    ("/opt/homebrew/opt", "postgresql@"),
];

/// One installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binaries {
    pub bin: PathBuf,
    /// As `PG_VERSION` of a cluster writes it: `17`.
    pub major: String,
}

impl Binaries {
    /// The newest installation; with a cluster of major version `wanted` already there, one of that
    /// version before a newer one.
    pub fn find(wanted: Option<&str>) -> Result<Self, EmbeddedError> {
        if let Some(bin) = env::var_os(BINARIES_VARIABLE).filter(|v| !v.is_empty()) {
            let bin = PathBuf::from(bin);
            if !is_installation(&bin) {
                return Err(EmbeddedError::NoBinaries {
                    looked_in: bin.display().to_string(),
                });
            }
            return Self::at(bin);
        }
        let mut candidates = packaged();
        candidates.extend(
            env::split_paths(env::var_os("PATH").as_deref().unwrap_or(OsStr::new("")))
                .filter(|bin| is_installation(bin)),
        );
        let matching = wanted.and_then(|wanted| {
            candidates
                .iter()
                .filter_map(|bin| Self::at(bin.clone()).ok())
                .find(|found| found.major == wanted)
        });
        match (matching, candidates.into_iter().next()) {
            (Some(found), _) => Ok(found),
            (None, Some(newest)) => Self::at(newest),
            (None, None) => Err(EmbeddedError::NoBinaries {
                looked_in: "/usr/lib/postgresql/*/bin, /usr/pgsql-*/bin and PATH".to_owned(),
            }),
        }
    }

    fn at(bin: PathBuf) -> Result<Self, EmbeddedError> {
        let said = Command::new(bin.join("postgres"))
            .arg("--version")
            .output()
            .map_err(|source| EmbeddedError::BadBinaries {
                bin: bin.clone(),
                source,
            })?;
        match major(&String::from_utf8_lossy(&said.stdout)) {
            Some(major) => Ok(Self { bin, major }),
            None => Err(EmbeddedError::BadBinaries {
                bin,
                source: std::io::Error::other("`postgres --version` names no version"),
            }),
        }
    }
}

/// The packages' `bin` folders, newest version first.
fn packaged() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (parent, prefix) in PACKAGED {
        let Ok(entries) = fs::read_dir(parent) else {
            continue;
        };
        for entry in entries.flatten() {
            let version = entry
                .file_name()
                .to_str()
                .and_then(|name| name.strip_prefix(prefix))
                .and_then(|version| version.parse::<u32>().ok());
            let bin = entry.path().join("bin");
            if let Some(version) = version
                && is_installation(&bin)
            {
                found.push((version, bin));
            }
        }
    }
    found.sort_by(|(a, _), (b, _)| b.cmp(a));
    found.into_iter().map(|(_, bin)| bin).collect()
}

fn is_installation(bin: &Path) -> bool {
    bin.join("postgres").is_file() && bin.join("initdb").is_file()
}

/// `postgres (PostgreSQL) 17.2 (Debian 17.2-1)` is 17; `18beta1` is 18.
fn major(said: &str) -> Option<String> {
    let version = said.split("(PostgreSQL)").nth(1)?.trim_start();
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::major;

    #[test]
    fn the_major_version_is_read_from_what_postgres_says() {
        assert_eq!(
            major("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n").as_deref(),
            Some("15")
        );
        assert_eq!(
            major("postgres (PostgreSQL) 18beta1").as_deref(),
            Some("18")
        );
        assert_eq!(major("something else 3"), None);
    }
}
