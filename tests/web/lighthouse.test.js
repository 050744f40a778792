// W15: Lighthouse, logged in with two brokers synced, as a phone and as a desk: the market's page and the portfolio's.
// LIGHTHOUSE=all takes every page, which is some ten minutes.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { PAGES, scene, userOf } from './support.js';

const LIGHTHOUSE = fileURLToPath(import.meta.resolve('lighthouse/cli/index.js'));
const FLAGS = `--headless=new${process.getuid?.() === 0 ? ' --no-sandbox' : ''}`;
const DEVICES = { phone: [], desk: ['--preset=desktop'] };
let cookie = '';
const stage = scene({}, async (shared) => {
  const { cookies } = await userOf(shared, ['a', 'b']);
  cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
});

for (const path of process.env.LIGHTHOUSE === 'all' ? PAGES : ['/', '/portfolio']) {
  for (const [device, flags] of Object.entries(DEVICES)) {
    test(`Lighthouse of ${path} as a ${device}`, { timeout: 600_000 }, async (context) => {
      const args = [LIGHTHOUSE, stage.demo.base + path, '--quiet', '--output=json', `--chrome-flags=${FLAGS}`, `--extra-headers=${JSON.stringify({ Cookie: cookie })}`, ...flags];
      const env = { ...process.env, CHROME_PATH: process.env.CHROMIUM ?? '/usr/bin/chromium' };
      const { stdout } = await promisify(execFile)(process.execPath, args, { env, maxBuffer: 64 << 20 });
      const { categories, audits, finalDisplayedUrl } = JSON.parse(stdout);
      assert.equal(new URL(finalDisplayedUrl).pathname, path);
      const score = (name) => categories[name].score;
      // A stream does not end: its bytes depend on how long Lighthouse runs.
      const loaded = audits['network-requests'].details.items.filter(({ url }) => !url.includes('/api/index/stream'));
      const bytes = loaded.reduce((sum, { transferSize }) => sum + transferSize, 0);
      const ms = (name) => Math.round(audits[name].numericValue);
      const figures = { accessibility: score('accessibility'), practices: score('best-practices'), seo: score('seo'), performance: score('performance'), cls: audits['cumulative-layout-shift'].numericValue, bytes, fcp_ms: ms('first-contentful-paint'), lcp_ms: ms('largest-contentful-paint'), blocked_ms: ms('total-blocking-time') };
      context.diagnostic(JSON.stringify(figures));
      const failed = (name) => categories[name].auditRefs.filter(({ id }) => audits[id].score !== null && audits[id].score < 1).map(({ id }) => id);
      assert.equal(figures.accessibility, 1, String(failed('accessibility')));
      assert.ok(figures.practices >= 0.95, String(failed('best-practices')));
      assert.ok(figures.cls <= 0.01, JSON.stringify([figures, audits['layout-shifts']?.details]));
      assert.ok(bytes <= 80 * 1024, JSON.stringify(figures));
      // Times on a busy machine mean little, so they are printed and not asserted.
      if (figures.performance < 0.95) context.diagnostic(`performance below 0.95: ${figures.performance}`);
    });
  }
}
