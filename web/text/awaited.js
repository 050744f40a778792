/** What is made, and of what. */
const MADE = { signals: 'Signals are being made of daily candles', candles: 'Daily candles are fetched' };

export const awaited = {
  status: 'Status',
  /** @param {keyof typeof MADE} what @param {{ done: number, of: number } | null | undefined} progress */
  loading: (what, progress) =>
    `${MADE[what]}${progress ? `: ${progress.done} of ${progress.of} shares are there` : ''}. They show by themselves.`,
  unreachable: 'No source answers.',
};
