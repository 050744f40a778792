UPDATE identity SET
    database_id = replace(gen_random_uuid()::text, '-', ''),
    cluster_id = replace(gen_random_uuid()::text, '-', ''),
    secret_check = NULL,
    place = own_place()
WHERE id = 1 AND place IS DISTINCT FROM own_place()
