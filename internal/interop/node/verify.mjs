// Reads {secret, svixSecret, stripeSecret, received: [{source, header, body}]} as JSON from
// standard input and lets each SDK verify what an app received. Prints one
// line for each check; exits 1 when one fails.
import { readFileSync } from 'node:fs'
import { Webhook as Standard } from 'standardwebhooks'
import { Webhook as Svix } from 'svix'
import Stripe from 'stripe'

const { secret, svixSecret, stripeSecret, received } = JSON.parse(readFileSync(0, 'utf8'))
let failed = false

function check (what, verify) {
  try {
    verify()
    console.log(`ok ${what}`)
  } catch (err) {
    failed = true
    console.log(`FAILED ${what}: ${err.message}`)
  }
}

function refuse (what, verify) {
  check(what, () => {
    try {
      verify()
    } catch {
      return
    }
    throw new Error('was accepted')
  })
}

for (const { source, header, body } of received) {
  check(`standardwebhooks verifies ${source}`, () => new Standard(secret).verify(body, header))
  // Svix's SDK prefers svix-* headers: where the sender was Svix, those are its
  // own and passed through, so they verify under the sender's secret.
  const ours = Object.fromEntries(Object.entries(header).filter(([name]) => !name.startsWith('svix-')))
  check(`svix verifies ${source}`, () => new Svix(secret).verify(body, ours))
  if (source === 'svix') {
    check('svix verifies the original signature', () => new Svix(svixSecret).verify(body, header))
  }
  refuse(`standardwebhooks refuses an altered ${source}`, () => new Standard(secret).verify(body + ' ', header))
  if (source === 'stripe') {
    check('stripe verifies the original signature', () =>
      Stripe.webhooks.constructEvent(body, header['stripe-signature'], stripeSecret))
  }
}
process.exit(failed ? 1 : 0)
