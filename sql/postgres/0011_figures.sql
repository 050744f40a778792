-- What a point of the trend is of: brokers, and holdings of them; and of how many of these the broker
-- calls the average unreliable. Null in points of before, whose suspect says the last as well.
ALTER TABLE points ADD COLUMN brokers text COLLATE "C" CHECK (brokers IN ('', 'a', 'b', 'ab'));
ALTER TABLE points ADD COLUMN holdings bigint;
ALTER TABLE points ADD COLUMN discrepancies bigint;

-- The broker's id of the person whose rows these are; null where it was not kept or not said.
ALTER TABLE syncs ADD COLUMN broker_user text COLLATE "C";

-- The move of the price since the previous close in percent, where the broker says that alone.
ALTER TABLE holdings ADD COLUMN change_pct text COLLATE "C";
