// Takes the pictures of the README from a demo: node tests/web/pictures.js
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch, open, register, startDemo, sync, visit } from './support.js';

const FOLDER = join(fileURLToPath(import.meta.url), '..', '..', '..', 'docs', 'images');

const demo = await startDemo();
const browser = await launch();
const { page, context } = await open(browser);
await register(page, demo.base);
await sync(page, demo, 'a');
await sync(page, demo, 'b');
const storageState = await context.storageState();
for (const colorScheme of ['light', 'dark']) {
  const { page: shown } = await open(browser, { colorScheme, storageState, viewport: { width: 1120, height: 760 } });
  await visit(shown, `${demo.base}/portfolio`);
  await shown.getByText('Broker A synced').waitFor();
  await shown.screenshot({ path: join(FOLDER, `dashboard-${colorScheme}.png`) });
}
await browser.close();
await demo.stop();
