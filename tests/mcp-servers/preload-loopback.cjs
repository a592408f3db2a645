// Loaded into each Node server before its own code (`node --require`). The servers bind every interface and a fixed port; the tests
// want loopback and a port that is free. The port that was taken is written to standard error, for the test to read.
'use strict'
const net = require('node:net')

const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (...args) {
  const callback = args.find((arg) => typeof arg === 'function')
  this.once('listening', () => {
    const address = this.address()
    if (address && address.port) process.stderr.write(`fencepost-test: listening on ${address.port}\n`)
  })
  const options = { host: '127.0.0.1', port: Number(process.env.FENCEPOST_TEST_PORT || 0) }
  return callback ? listen.call(this, options, callback) : listen.call(this, options)
}
