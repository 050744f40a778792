// What is wrong by the service's own diagnosis, the worst first: since when, until when, and what to do.
import { serverNow } from '../data/api.js';
import { moments } from '../data/format.js';
import { aroundCommand } from '../data/last-day.js';
import { status as t } from '../text/status.js';
import { button, h, say } from './view.js';

/**
 * As health has it.
 * @typedef {{ name: string, severity: 'note' | 'degraded' | 'down', cause: string, cure: string, command?: string,
 *   since_ist: string, until_ist?: string }} Trouble
 */

/** The worst severity of all. @param {Trouble[]} troubles */
export const worstOf = (troubles) =>
  troubles.some(({ severity }) => severity === 'down')
    ? 'down'
    : troubles.some(({ severity }) => severity === 'degraded')
      ? 'degraded'
      : 'ok';

/** What is wrong, and then what is only worth knowing. @param {Trouble[]} troubles */
export function troublesOf(troubles) {
  const wrong = troubles.filter(({ severity }) => severity !== 'note');
  const notes = troubles.filter(({ severity }) => severity === 'note');
  return [listed(t.wrong(wrong.length), wrong, 'bad'), listed(t.notes(notes.length), notes, 'neutral')];
}

/** @param {string} heading @param {Trouble[]} troubles @param {'bad' | 'neutral'} kind */
function listed(heading, troubles, kind) {
  if (troubles.length === 0) return null;
  return h(
    'section',
    { class: 'panel wrong' },
    h('h2', null, heading),
    h(
      'ul',
      { class: 'troubles' },
      troubles.map((trouble) => h('li', { class: kind }, told(trouble, kind))),
    ),
  );
}

/** @param {Trouble} trouble @param {'bad' | 'neutral'} kind */
const told = ({ cause, cure, command, since_ist: since, until_ist: until }, kind) => [
  h('b', null, kind === 'bad' ? '⚠ ' : '● ', cause),
  h(
    'span',
    { class: 'muted' },
    ` ${t.since(moments(since, serverNow()))}`,
    until && ` · ${t.probably(moments(until, serverNow()))}`,
  ),
  cureOf(cure, command),
];

/** @param {string} cure @param {string | undefined} command */
function cureOf(cure, command) {
  const [before, itself, behind] = aroundCommand(cure, command);
  if (!itself) return h('p', { class: 'cure' }, before);
  const copied = h('span', { role: 'status', class: 'muted' });
  const copy = () =>
    navigator.clipboard?.writeText(itself).then(
      () => say(copied, t.copied),
      () => say(copied, t.notCopied),
    );
  return h(
    'p',
    { class: 'cure' },
    before,
    h('code', null, itself),
    behind,
    ' ',
    button(t.copy, copy, { class: 'quiet', 'aria-label': `${t.copy}: ${itself}` }),
    ' ',
    copied,
  );
}
