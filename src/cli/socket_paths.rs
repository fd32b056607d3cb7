//! Where the control socket of a data file is.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use tokio::net::{UnixListener, UnixStream};

use crate::store::{beside, folder_of};

/// The maximum length of the socket's path, in bytes. The limit of Unix socket addresses is 108.
const MAX_SOCKET_PATH: usize = 100;

/// The paths of a data file's socket.
pub(super) struct SocketPaths {
    /// In the folder of the data file. `None` if that is too long for a socket.
    beside: Option<PathBuf>,
    /// Under the runtime folder, if the socket cannot be beside the data file. The folder must be
    /// [private](require_private).
    runtime: PathBuf,
}

impl SocketPaths {
    pub(super) fn of(data: &Path) -> io::Result<Self> {
        let data = std::path::absolute(data)?;
        let beside =
            Some(beside(&data, "sock")).filter(|path| path.as_os_str().len() <= MAX_SOCKET_PATH);
        let folder = match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
            Some(folder) => PathBuf::from(folder),
            None => std::env::temp_dir().join(format!("steward-{}", geteuid().as_raw())),
        };
        let name = blake3::hash(data.as_os_str().as_encoded_bytes()).to_hex();
        Ok(Self { beside, runtime: folder.join(format!("steward-{}.sock", &name[..16])) })
    }

    fn runtime_folder(&self) -> &Path {
        folder_of(&self.runtime)
    }

    /// Creates the socket of a server. Some file systems have none.
    pub(super) fn bind(self) -> io::Result<(UnixListener, PathBuf)> {
        match self.beside.clone().map(bind) {
            Some(Ok(bound)) => return Ok(bound),
            Some(Err(error))
                if !matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported
                ) =>
            {
                return Err(error);
            }
            _ => {}
        }
        let folder = self.runtime_folder();
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).or_else(|error| {
            // If the path exists, the check that follows describes the problem better.
            if folder.symlink_metadata().is_ok() { Ok(()) } else { Err(error) }
        })?;
        require_private(folder)?;
        bind(self.runtime)
    }

    /// Connects to the socket of a server.
    pub(super) async fn connect(&self) -> io::Result<UnixStream> {
        let runtime = async {
            require_private(self.runtime_folder())?;
            UnixStream::connect(&self.runtime).await
        };
        let Some(path) = &self.beside else { return runtime.await };
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                runtime.await.map_err(|_| error)
            }
            connected => connected,
        }
    }
}

/// Creates a socket in the place of one that a dead process left.
fn bind(path: PathBuf) -> io::Result<(UnixListener, PathBuf)> {
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    Ok((UnixListener::bind(&path)?, path))
}

/// Rejects a folder in which another user could create a socket. It must be a real folder and not a symbolic link,
/// belong to this process's user, and have mode 0700.
fn require_private(folder: &Path) -> io::Result<()> {
    let found = folder.symlink_metadata()?;
    let problem = if !found.is_dir() {
        "is not a folder, or is a symbolic link".to_owned()
    } else if found.uid() != geteuid().as_raw() {
        format!("belongs to user {}", found.uid())
    } else if found.mode() & 0o777 != 0o700 {
        format!("has mode {:04o}", found.mode() & 0o777)
    } else {
        return Ok(());
    };
    let text = format!(
        "{} {problem}; the control socket needs a folder of user {} with mode 0700 (set XDG_RUNTIME_DIR)",
        folder.display(),
        geteuid().as_raw(),
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}
