import { plural } from '../text.js';

export const proofWords = {
  /** @param {number} proved @param {number} all @param {string} at */
  proved: (proved, all, at) => `Proved for ${proved} of ${plural(all, 'holding', 'holdings')} against the brokers, ${at}`,
  /** @param {number} all @param {string} at */
  provedAll: (all, at) => `Proved for all ${plural(all, 'holding', 'holdings')} against the brokers, ${at}`,
  neverSynced: 'Not proved yet: no broker of these accounts was ever synced',
  toSync: 'sync one',
};
