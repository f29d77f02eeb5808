// An OpenID provider for run.py: one client, three people, access tokens that are JWTs. It prints its address.
//
// `POST /rotate` gives it another key to sign with, and drops the one before. `POST /lasts?SECONDS` is how long what it gives from then on holds,
// and `GET /done` what it has renewed and revoked.

import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import Provider from 'oidc-provider';

const [toolrack] = process.argv.slice(2);
const RESOURCE = `${toolrack}/mcp`;
// Its tokens hold for a second.
const SHORT = 'urn:toolrack:short';
const done = { renewed: 0, revoked: 0 };
let lasts = 300;
const GROUPS = { ada: ['admins', 'staff'], bob: ['staff'], eve: ['others'] };

function key() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' };
}

function provider(issuer, seconds) {
  const made = new Provider(issuer, {
    jwks: { keys: [key()] },
    cookies: { keys: ['of this test'] },
    clients: [{
      client_id: 'page',
      client_secret: 'of the page & more',
      redirect_uris: [`${toolrack}/sign-in/callback`],
      grant_types: ['authorization_code', 'refresh_token'],
      post_logout_redirect_uris: [`${toolrack}/`],
    }, {
      client_id: 'program',
      token_endpoint_auth_method: 'none',
      redirect_uris: ['http://127.0.0.1/callback'],
      grant_types: ['authorization_code'],
      application_type: 'native',
    }],
    claims: { openid: ['sub'], profile: ['groups'] },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, groups: GROUPS[id] ?? [] }) }),
    extraTokenClaims: (_, token) => ({ groups: GROUPS[token.accountId] ?? [] }),
    pkce: { required: () => true },
    issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    ttl: { AccessToken: (_, token) => token.resourceServer?.accessTokenTTL ?? seconds, Interaction: 600, Grant: 600, Session: 600, IdToken: 600 },
    features: {
      devInteractions: { enabled: true },
      rpInitiatedLogout: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => RESOURCE,
        useGrantedResource: (_, code) => code.clientId === 'page',
        getResourceServerInfo: (_, resource) => ({
          scope: 'tools',
          audience: resource,
          accessTokenFormat: 'jwt',
          accessTokenTTL: resource === SHORT ? 1 : lasts,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  });
  made.on('grant.success', ({ oidc }) => { done.renewed += oidc.params.grant_type === 'refresh_token' ? 1 : 0; });
  made.on('refresh_token.destroyed', () => { done.revoked += 1; });
  return made;
}

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  let serve = provider(issuer, 300).callback();
  server.on('request', (request, response) => {
    if (request.method === 'POST' && request.url === '/rotate') {
      serve = provider(issuer, 300).callback();
      response.end('rotated');
    } else if (request.method === 'POST' && request.url.startsWith('/lasts?')) {
      lasts = Number(request.url.split('?')[1]);
      response.end('it is so');
    } else if (request.url === '/done') {
      response.end(JSON.stringify(done));
    } else {
      serve(request, response);
    }
  });
  console.log(`provider at ${issuer}`);
});
