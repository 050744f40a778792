//! Reads a small file that may hold a secret. Blocks on the disk.

use std::fs::File;
use std::io::{self, Read};

use zeroize::Zeroizing;

/// Reads the file into memory that is wiped on drop.
///
/// # Errors
/// If it cannot be read. [`io::ErrorKind::FileTooLarge`] if it has more than `bytes_max` bytes.
pub fn read(file: File, bytes_max: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    // Reserve everything at once: a buffer that grows leaves unwiped copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(bytes_max + 1));
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        let why = format!("more than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit_and_refused_beyond() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        std::fs::write(&path, "ten bytes.").unwrap();
        let bytes = read(File::open(&path).unwrap(), 10).unwrap();
        assert_eq!(bytes.as_slice(), b"ten bytes.");
        assert!(bytes.capacity() < 2 * 10 + 2, "grew");
        let error = read(File::open(&path).unwrap(), 9).unwrap_err();
        assert_eq!(error.to_string(), "more than 9 bytes");
    }
}
