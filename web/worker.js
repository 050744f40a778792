// The service worker: without a connection it shows the frame of the pages, which says so. It keeps the document and
// the files that the document names, of one version, and nothing else: no answer of the API, so no price, and nothing
// of a user, since all pages are one document that knows none. With a connection the document is the service's.
const SHELL = 'shell %V%';
/** What a proxy answers while the service restarts. */
const AWAY = [502, 503, 504];

/** @type {any} */
const worker = self;

worker.addEventListener('install', (event) => {
  // The API never passes through here.
  event.addRoutes?.({ condition: { urlPattern: { pathname: '/api/*' } }, source: 'network' })?.catch(() => {});
  event.waitUntil(keepShell());
});
worker.addEventListener('activate', (event) => event.waitUntil(dropOthers()));
worker.addEventListener('fetch', (event) => {
  const { method, mode, url } = event.request;
  const { origin, pathname } = new URL(url);
  if (method !== 'GET' || origin !== location.origin) return;
  if (mode === 'navigate' && isPage(pathname)) event.respondWith(page(event.request));
  else if (pathname.startsWith('/assets/')) event.respondWith(file(event.request));
});

/** A broker's login brings a code, and an answer of the API is no page. */
const isPage = (path) => !path.startsWith('/api/') && !path.startsWith('/return/');

async function keepShell() {
  const answer = await fetch('/', { cache: 'no-cache' });
  const files = (await answer.clone().text()).match(/\/assets\/[0-9a-f]+\/[\w./-]+/g) ?? [];
  // A document of another version comes with a worker of its own.
  if (!answer.ok || !files[0]?.startsWith('/assets/%V%/')) throw new Error('a document of another version');
  const shell = await caches.open(SHELL);
  await shell.addAll([...new Set(files)]);
  await shell.put('/', answer);
  worker.skipWaiting();
}

async function dropOthers() {
  for (const name of await caches.keys()) if (name !== SHELL) await caches.delete(name);
  await worker.clients.claim();
}

const kept = (request) => caches.match(request, { cacheName: SHELL });

async function page(request) {
  try {
    const answer = await fetch(request);
    return (AWAY.includes(answer.status) && (await kept('/'))) || answer;
  } catch (failure) {
    const shell = await kept('/');
    if (shell) return shell;
    throw failure;
  }
}

const file = async (request) => (await kept(request)) ?? fetch(request);
