// Takes pictures of every page from demos, for people to look at: node tests/web/pictures.js FOLDER
// Without a folder it takes those of the README. Names: state, page, width, colour scheme.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PAGES, launch, open, register, startDemo, sync, until, visit } from './support.js';

const IMAGES = join(fileURLToPath(import.meta.url), '..', '..', '..', 'docs', 'images');
const SCHEMES = ['light', 'dark'];
const WIDTHS = process.env.WIDTHS?.split(' ').map(Number) ?? [390, 640, 820, 1024, 1200, 1280];
const BOTH = WIDTHS.filter((width) => [390, 1280].includes(width));
const [, , folder, ...only] = process.argv;

/** A demo, a browser, and a user of it whose session later pages share. */
async function staged(settings, synced) {
  const demo = await startDemo(settings);
  const browser = await launch();
  const { page, context } = await open(browser);
  await register(page, demo.base);
  for (const which of synced) await sync(page, demo, which);
  const storageState = await context.storageState();
  await context.close();
  return { demo, browser, storageState, stop: async () => { await browser.close(); await demo.stop(); } };
}

async function everyPage({ demo, browser, storageState }, state, widths, ready = async () => {}) {
  for (const colorScheme of SCHEMES) {
    for (const width of widths) {
      const { page, context } = await open(browser, { colorScheme, storageState, reducedMotion: 'reduce', viewport: { width, height: width < 500 ? 800 : 900 } });
      for (const path of PAGES) {
        if (only.length && !only.includes(path)) continue;
        await visit(page, demo.base + path);
        await ready(page);
        if (path === '/watch') await page.locator('td.number', { hasText: /\d/ }).first().waitFor();
        const name = path === '/' ? 'market' : path.slice(1).replaceAll('/', '-');
        await page.screenshot({ path: join(folder, `${state}-${name}-${width}-${colorScheme}.png`), fullPage: true });
      }
      await context.close();
    }
  }
}

/** The strip says from when the prices are. */
const live = (page) => page.locator('#strip').getByText(/^data/).waitFor();

async function all() {
  mkdirSync(folder, { recursive: true });
  const empty = await staged({}, []);
  await everyPage(empty, 'empty', BOTH, live);
  await empty.stop();
  // Every price of a demo is simulated and says so.
  const full = await staged({}, ['a', 'b']);
  await everyPage(full, 'simulated', WIDTHS, live);
  await full.stop();
  const stale = await staged({ BHAV_PUBLIC_ENABLED: 'false', BHAV_BROKERA_TICKER: 'false' }, ['a', 'b']);
  await stale.demo.fault('broker_a', 'refuse');
  await until('a stale snapshot', async () => (await (await fetch(`${stale.demo.base}/api/index/snapshot`)).json()).market.stale);
  await everyPage(stale, 'stale', BOTH, live);
  await stale.stop();
}

async function readme() {
  const scene = await staged({}, ['a', 'b']);
  for (const colorScheme of SCHEMES) {
    const { page } = await open(scene.browser, { colorScheme, storageState: scene.storageState, reducedMotion: 'reduce', viewport: { width: 1280, height: 760 } });
    await visit(page, `${scene.demo.base}/portfolio`);
    await page.getByText('Broker A synced').waitFor();
    // Broker B's own prices come without the close before; the feed's follow.
    await page.getByRole('row', { name: /GRASIM.* [+−]\d+\.\d\d % \d/ }).waitFor();
    await live(page);
    await page.screenshot({ path: join(IMAGES, `dashboard-${colorScheme}.png`) });
  }
  await scene.stop();
}

await (folder ? all() : readme());
