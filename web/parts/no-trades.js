// What stands in place of trades before the first file: where each broker offers its files.
import { session } from '../data/api.js';
import { demoFiles } from '../data/ledger.js';
import { ledger } from '../text/ledger.js';
import { noTrades as t } from '../text/no-trades.js';
import { simulated } from './figures.js';
import { h } from './view.js';

/** @typedef {import('../data/ledger.js').Account} Account */

/** @param {Account[]} accounts @param {boolean} isEmpty whether not even a sync has brought any */
export const noTradesYet = (accounts, isEmpty) =>
  h(
    'section',
    { class: 'first-steps' },
    h('h2', null, isEmpty ? t.title : t.titleSynced),
    h('p', null, t.why),
    whereFilesAre(accounts),
  );

/** What to press at each broker; in a demo the simulated brokers' files are links. @param {Account[]} accounts */
export function whereFilesAre(accounts) {
  const files = demoFiles(session.login_pages, accounts);
  return [
    ...t.brokers.flatMap(({ name, steps }) => [
      h('h3', null, name),
      h(
        'ul',
        null,
        steps.map((step) => h('li', null, step)),
      ),
    ]),
    h('p', null, t.then),
    ...(files.length > 0 ? [h('p', null, simulated(true), ' ', t.demo), listOf(files)] : []),
  ];
}

/** @param {ReturnType<typeof demoFiles>} files */
const listOf = (files) =>
  h(
    'ul',
    { class: 'demo-files' },
    files.map(({ account, name, href }) =>
      h(
        'li',
        null,
        h('a', { href, target: '_blank', rel: 'noreferrer noopener', download: name }, name),
        ` · ${ledger.account(account)}`,
      ),
    ),
  );
