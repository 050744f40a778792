// Sentences of the frame and of what several pages share. Those of a page are in the folder text. Figures come in formatted.

export const plural = (n, one, more) => `${n} ${n == 1 ? one : more}`;

export const text = {
  simulated: 'Simulated',
  noClose: 'The previous close is not known',
  source: { broker_a: 'Broker A', public: 'Public provider' },
  direction: { bullish: '▲ up', bearish: '▼ down' },
  phase: {
    pre_open: 'Pre-open',
    open: 'Open',
    closing: 'Closing auction',
    post_close: 'After the close',
    closed: 'Closed',
    holiday: 'Holiday',
  },
  pattern(name) {
    const bare = name.replace(/^(bullish|bearish)_/, '').replaceAll('_', ' ');
    return bare.charAt(0).toUpperCase() + bare.slice(1);
  },
  retried: 'It is tried again by itself.',
  app: {
    again: 'Try again',
    close: 'Close this notice',
    reload: 'Reload',
    missing: 'There is no such page',
    missingWhy: 'The address may be mistyped, or the page is of an older version.',
    titles: { watch: 'Watch', portfolio: 'Portfolio', sync: 'Sync', trend: 'Trend', journal: 'Journal', trades: 'Trades', gains: 'Gains', integrity: 'Integrity', account: 'Account' },
    away: 'The service does not answer. It is tried again by itself.',
    toMarket: 'To the market',
    notLoaded: 'This page could not be loaded',
    notLoadedWhy: 'The service did not answer, or a new version has replaced this page’s. It is tried again.',
    newVersion: 'A new version of the service is running.',
  },
  problem: {
    offline: 'The service does not answer. Is it running, and is this device online?',
    away: (status) => `The service does not answer (${status}). It may be restarting; it is tried again.`,
    unknown: (status) => `The service answered ${status} without saying why.`,
    inFront: 'A proxy in front of this site wants a login: load the page again.',
  },
  strip: {
    next: { pre_open: 'trading from', closed: 'next session', holiday: 'next session' },
    until: 'until',
    in: (left) => `(in ${left})`,
    data: (at) => `data ${at} IST`,
    line: { connecting: 'Connecting…', live: 'Live', polling: 'Every 15 s', lost: 'No connection' },
    freeze: 'Freeze',
    freezeWhy: 'Stops every change on the page until it is pressed again',
    frozenAt: (at) => `Frozen at ${at}`,
    unreachable: 'The service does not answer. It is tried again.',
    lost: (at) => `No connection to the service. What you see is of ${at}; it is tried again.`,
    stale: (at) => `Prices are stale, from ${at}. No feed has given newer ones.`,
    late: (words) => `Prices run behind: ${words.toLowerCase()}.`,
    hide: 'Hide amounts',
    find: 'Find a share or an index',
    account: 'Account',
    logIn: 'Log in',
    status: 'Status',
  },
  form: { show: 'Show', again: (s) => `Try again in ${s} s.` },
  search: { results: 'Instruments', none: 'No instrument fits' },
  table: {
    csv: 'CSV ↓',
    actions: 'Actions',
    sortBy: 'Sort by',
    asListed: 'As listed',
    open: (name) => `More of ${name}`,
  },
};
