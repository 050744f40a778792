UPDATE candle_histories SET refetch = TRUE WHERE symbol = ?1
