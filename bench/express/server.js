// The receiver that a Node team would write against PostgreSQL: verify,
// INSERT … ON CONFLICT DO NOTHING, commit, 200. A peer for the benchmarks.
'use strict'

const crypto = require('node:crypto')
const express = require('express')
const { Pool } = require('pg')

const secret = process.env.LOAD_SECRET
const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 16 })
const insert = {
  name: 'insert',
  text: `INSERT INTO inbox (source, account, id, type, body, header)
VALUES ($1, '', $2, $3, $4, $5) ON CONFLICT (source, account, id) DO NOTHING`
}

function authentic (req) {
  const given = Buffer.from(req.get('X-Signature') || '', 'hex')
  const want = crypto.createHmac('sha256', secret).update(req.body).digest()
  return given.length === want.length && crypto.timingSafeEqual(given, want)
}

const app = express()
app.disable('x-powered-by')
app.disable('etag')
app.get('/healthz', (req, res) => res.end())
app.post('/in/:source', express.raw({ type: () => true, limit: '1mb' }), async (req, res) => {
  if (!authentic(req)) return res.status(401).end()
  let event
  try {
    event = JSON.parse(req.body)
  } catch {
    return res.status(400).end()
  }
  if (!event.id) return res.status(400).end()
  try {
    await pool.query({ ...insert, values: [req.params.source, event.id, event.type, req.body, JSON.stringify(req.headers)] })
  } catch {
    return res.status(503).end()
  }
  res.status(200).end()
})

const [host, port] = process.env.LISTEN.split(':')
app.listen(Number(port), host)
