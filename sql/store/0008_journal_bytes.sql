-- Bytes of text in a user's journal, kept beside the count for the same reason.
ALTER TABLE users ADD COLUMN journal_bytes INTEGER NOT NULL DEFAULT 0;

UPDATE users SET journal_bytes = (
    SELECT coalesce(sum(octet_length(symbol) + coalesce(octet_length(strategy), 0)
        + coalesce(octet_length(notes), 0) + octet_length(tags)), 0)
    FROM journal WHERE user_id = users.id
) WHERE journal_entries > 0;
