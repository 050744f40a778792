// The bar of the last day, and the command within a cure.
import assert from 'node:assert/strict';
import test from 'node:test';
import { PIECES, aroundCommand, runsOf, secondsOf } from '../../../web/data/last-day.js';

const day = { piece_s: 300, ends_ist: '2026-11-20T11:20:00+05:30' };

test('a day is told in runs with their times, and ends at the right', () => {
  const runs = runsOf('oo-xxx', day);
  assert.deepEqual(runs.map(({ state, length }) => [state, length]), [['o', 2], ['-', 1], ['x', 3]]);
  assert.deepEqual(runs.map(({ at }) => at), [PIECES - 6, PIECES - 4, PIECES - 3]);
  assert.equal(runs[2].from, new Date('2026-11-20T11:05:00+05:30').toISOString());
  assert.equal(runs[2].to, new Date(day.ends_ist).toISOString());
  for (const [at, run] of runs.slice(1).entries()) assert.equal(run.from, runs[at].to);
  assert.deepEqual(secondsOf(runs, day.piece_s), { o: 600, '-': 300, x: 900 });
});

test('a whole day and none at all have their length', () => {
  assert.deepEqual(runsOf('o'.repeat(PIECES), day).map(({ at, length }) => [at, length]), [[0, PIECES]]);
  assert.deepEqual(runsOf('', day), []);
  assert.deepEqual(secondsOf([], 300), {});
});

test('a command is found within its sentence', () => {
  const words = 'log in, then run: bhav token a (each day)';
  assert.deepEqual(aroundCommand(words, 'bhav token a'), ['log in, then run: ', 'bhav token a', ' (each day)']);
  for (const none of [undefined, 'bhav token b']) assert.deepEqual(aroundCommand(words, none), [words, '', '']);
});
