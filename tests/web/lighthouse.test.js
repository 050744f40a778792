// W15: Lighthouse as a phone, on the market's page and on the portfolio's.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { scene } from './support.js';

const LIGHTHOUSE = fileURLToPath(import.meta.resolve('lighthouse/cli/index.js'));
const FLAGS = `--headless=new${process.getuid?.() === 0 ? ' --no-sandbox' : ''}`;
const stage = scene();

for (const path of ['/', '/portfolio']) {
  test(`Lighthouse of ${path}`, { timeout: 600_000 }, async (context) => {
    const args = [LIGHTHOUSE, stage.demo.base + path, '--quiet', '--output=json', `--chrome-flags=${FLAGS}`];
    const env = { ...process.env, CHROME_PATH: process.env.CHROMIUM ?? '/usr/bin/chromium' };
    const { stdout } = await promisify(execFile)(process.execPath, args, { env, maxBuffer: 64 << 20 });
    const { categories, audits } = JSON.parse(stdout);
    const score = (name) => categories[name].score;
    // A stream does not end: its bytes depend on how long Lighthouse runs.
    const loaded = audits['network-requests'].details.items.filter(({ url }) => !url.includes('/api/index/stream'));
    const bytes = loaded.reduce((sum, { transferSize }) => sum + transferSize, 0);
    const figures = { accessibility: score('accessibility'), practices: score('best-practices'), seo: score('seo'), performance: score('performance'), cls: audits['cumulative-layout-shift'].numericValue, bytes, fcp_ms: audits['first-contentful-paint'].numericValue, lcp_ms: audits['largest-contentful-paint'].numericValue };
    context.diagnostic(JSON.stringify(figures));
    assert.equal(figures.accessibility, 1);
    assert.ok(figures.practices >= 0.95, JSON.stringify(figures));
    assert.ok(figures.cls <= 0.01, JSON.stringify([figures, audits['layout-shifts']?.details]));
    assert.ok(bytes <= 40 * 1024, JSON.stringify(figures));
    // Times on a busy machine mean little, so they are printed and not asserted.
    if (figures.performance < 0.95) context.diagnostic(`performance below 0.95: ${figures.performance}`);
  });
}
