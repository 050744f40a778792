export const firstSteps = {
  title: 'Nothing synced yet',
  why: 'Your holdings and positions come from your brokers, with a key that stays yours.',
  steps: [
    'Make an app at your broker (Kite Connect at broker A, Breeze at broker B); it gives an API key and a secret.',
    'Register the return address that the sync page shows you.',
    'Press Sync, log in at the broker, and come back: the code is filled in for you.',
  ],
};
