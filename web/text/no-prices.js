export const noPrices = {
  unknown: 'No prices yet.',
  a: 'broker A',
  public: 'the public provider',
  starting: 'No prices yet. The service has just started; the first prices show here by themselves.',
  since: (s, asked) =>
    `No prices for ${s}: ${asked.length ? `${asked.join(' and ')} ${asked.length > 1 ? 'do' : 'does'} not answer` : 'no source of prices is set up'}.`,
};
