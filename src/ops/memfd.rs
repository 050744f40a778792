//! Files in memory (memfd), in which a process leaves data to its successor. They have no name in
//! any file system, are close-on-exec, and are sealed after writing.
//!
//! Any thread; each call takes a few microseconds. The bytes are read into memory that is wiped on
//! drop, and never logged.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use zeroize::Zeroizing;

/// Creates a file in memory with these bytes and seals it, so that no process can change it. `name`
/// shows in `/proc` only.
///
/// # Errors
/// When the system refuses the file or a seal.
pub fn sealed(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let created = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        // Linux before 6.3 does not know the flag.
        Err(Errno::INVAL) => memfd_create(name, flags),
        created => created,
    };
    let mut file = File::from(created?);
    file.write_all(bytes)?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

/// Reads all bytes of the file, whatever its offset, and closes it.
///
/// # Errors
/// If it is not a regular file, is longer than `bytes_max`, or cannot be read.
pub fn read(descriptor: OwnedFd, bytes_max: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = File::from(descriptor);
    let metadata = file.metadata()?;
    let length = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
    if !metadata.is_file() || length > bytes_max {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Zeroizing::new(vec![0; length]);
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use rustix::fs::{fcntl_get_seals, ftruncate};
    use rustix::io::{FdFlags, fcntl_getfd};

    use super::*;

    #[test]
    fn a_sealed_file_is_read_whole_and_cannot_be_changed() {
        let descriptor = sealed("test", b"some bytes").unwrap();
        assert!(fcntl_getfd(&descriptor).unwrap().contains(FdFlags::CLOEXEC));
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        assert!(fcntl_get_seals(&descriptor).unwrap().contains(seals));
        let file = File::from(descriptor.try_clone().unwrap());
        assert!(file.write_at(b"x", 0).is_err() && file.write_at(b"x", 10).is_err());
        assert!(ftruncate(&file, 3).is_err() && ftruncate(&file, 30).is_err());
        // Neither the offset at the end nor an earlier read matters.
        for _ in 0..2 {
            let read = read(descriptor.try_clone().unwrap(), 10).unwrap();
            assert_eq!(read.as_slice(), b"some bytes");
        }
    }

    #[test]
    fn a_file_that_is_too_long_and_a_socket_are_refused() {
        let ten = sealed("test", b"some bytes").unwrap();
        assert_eq!(read(ten, 9).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(read(one.into(), 10).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read(sealed("test", b"").unwrap(), 10).unwrap().len(), 0);
    }
}
