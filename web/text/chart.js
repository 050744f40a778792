export const chart = {
  nothing: 'Nothing to draw yet.',
  bin: (said, got, n) => `said ${said}, happened ${got}, ${n} judged`,
  reliability: (n) => `Reliability plot of ${n} groups of signals; the table beneath has its figures`,
  reliabilityWords:
    'Across: the confidence said. Up: how often it happened. On the dashed line both agree. Area: number of signals; lines: 95 % intervals; hollow: too few to tell.',
};
