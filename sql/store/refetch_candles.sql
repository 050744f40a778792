UPDATE candle_histories SET refetch = 1 WHERE symbol = ?1
