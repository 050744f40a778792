// Why there are no prices at all, by the service's own report, which is a 503 meanwhile. It comes when that is so.
import { noPrices as t } from '../text/no-prices.js';
import { call } from './api.js';
import { span } from './format.js';

const STARTING_S = 60;

export async function whyNoPrices() {
  const health = await call('/api/health', { accept: [503] }).catch(() => null);
  if (health?.uptime_s === undefined) return t.unknown;
  const upS = health.uptime_s;
  if (upS < STARTING_S) return t.starting;
  const { broker_a: a, public: other } = health.feeds;
  const isAsked = (/** @type {{ state: string }} */ feed) => !['off', 'no_token', 'paused'].includes(feed.state);
  const asked = [isAsked(a) && t.a, isAsked(other) && t.public].filter(Boolean);
  return t.since(span(upS), asked);
}
