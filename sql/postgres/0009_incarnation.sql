-- The id that tokens are bound to (`database_id`) is the database's incarnation: it is made anew
-- where the database is seen to be another than it was, or to have gone back. The id of the cluster
-- stays while the same database goes on, and tells those that share a cache server apart.
ALTER TABLE identity ADD COLUMN cluster_id text COLLATE "C";
-- Where the database was when it got its ids. A dump that is restored is somewhere else.
ALTER TABLE identity ADD COLUMN place text COLLATE "C";
-- A check value of the secret that tokens are signed with, which every node has to know.
ALTER TABLE identity ADD COLUMN secret_check text COLLATE "C";

-- The server, the database in it, and the table in that. A standby that is promoted has the same. A
-- server that does not tell its own name is left out.
CREATE FUNCTION own_place() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    server text := '';
    place text;
BEGIN
    BEGIN
        SELECT system_identifier::text INTO server FROM pg_control_system();
    EXCEPTION WHEN OTHERS THEN
        server := '';
    END;
    SELECT server || '/' || oid::text || '/' || 'identity'::regclass::oid::text INTO place
    FROM pg_database WHERE datname = current_database();
    RETURN place;
END $$;

-- 48 random bits.
CREATE FUNCTION random_bits() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT ('x' || left(gen_random_uuid()::text, 8) || right(gen_random_uuid()::text, 4))
        ::bit(48)::bigint
$$;

UPDATE identity SET cluster_id = replace(gen_random_uuid()::text, '-', ''), place = own_place();

-- A random mark of each change. A number alone does not prove that the changes before it are those
-- that were read: after a database has gone back, other changes get the same numbers.
ALTER TABLE changes ADD COLUMN mark bigint NOT NULL DEFAULT 0;
ALTER TABLE changes ALTER COLUMN mark SET DEFAULT random_bits();

-- An older program that still runs makes accounts without saying their epoch. No token of another
-- account that once had the id is good for them.
ALTER TABLE users ALTER COLUMN token_epoch SET DEFAULT random_bits();
