-- Removes what no node has written, before it is read without a script. KEYS: what will be read.
-- Returns what was foreign.
return foreign
