-- The highest epoch in which a leader has written, for each role. Who comes with a lower one has
-- been replaced, and is refused.
CREATE TABLE leadership (
    role text COLLATE "C" PRIMARY KEY,
    epoch bigint NOT NULL
);

INSERT INTO leadership (role, epoch) VALUES ('feed', 0);
