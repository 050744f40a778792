//! Names of files that belong to another file.

use std::path::{Path, PathBuf};

/// `path` with `suffix` appended to the file's name: `bhav.db` and `-wal` give `bhav.db-wal`.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suffix_follows_the_whole_name() {
        assert_eq!(beside(Path::new("a/b.db"), "-wal"), Path::new("a/b.db-wal"));
    }
}
