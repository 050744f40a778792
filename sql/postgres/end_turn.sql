-- Nobody is its holder then, so that an extension that comes late finds nothing to extend.
UPDATE turns SET holder = '', until = '-infinity'
WHERE user_id = ?1 AND holder = ?2 AND number = ?3
