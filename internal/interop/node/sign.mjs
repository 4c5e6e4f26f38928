// Reads {secrets, payloads} as JSON from standard input and prints, for each
// SDK, the request that it signs.
import { readFileSync } from 'node:fs'
import { Webhook as Standard } from 'standardwebhooks'
import { Webhook as Svix } from 'svix'
import Stripe from 'stripe'

const { secrets, payloads } = JSON.parse(readFileSync(0, 'utf8'))
const now = new Date()
const seconds = String(Math.floor(now / 1000))

const requests = [
  {
    source: 'standard',
    body: payloads.standard,
    header: {
      'webhook-id': 'msg_standard',
      'webhook-timestamp': seconds,
      'webhook-signature': new Standard(secrets.standard).sign('msg_standard', now, payloads.standard)
    }
  },
  {
    source: 'svix',
    body: payloads.svix,
    header: {
      'svix-id': 'msg_svix',
      'svix-timestamp': seconds,
      'svix-signature': new Svix(secrets.svix).sign('msg_svix', now, payloads.svix)
    }
  },
  {
    source: 'stripe',
    body: payloads.stripe,
    header: {
      'stripe-signature': Stripe.webhooks.generateTestHeaderString({ payload: payloads.stripe, secret: secrets.stripe })
    }
  }
]
process.stdout.write(JSON.stringify(requests))
