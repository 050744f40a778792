DELETE FROM silent_symbols WHERE date < ?1
