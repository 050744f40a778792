-- Delivered shares that broker A has taken out of the settled ones, as sold ones. What a program of
-- before goes on writing beside this one has none.
ALTER TABLE holdings ADD COLUMN used_quantity TEXT NOT NULL DEFAULT '0';
