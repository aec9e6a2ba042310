// The certified provider `oidc-provider`, from npm. It signs tokens for the resource that a client asks for, and prints its issuer.
import http from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

// npx puts the folder of the package's programs first.
const programs = process.env.PATH.split(':').find((folder) => folder.endsWith('node_modules/.bin'));
const { Provider } = await import(pathToFileURL(join(programs, '../oidc-provider/lib/index.js')));

let callback;
const server = http.createServer((request, response) => callback(request, response));
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  callback = new Provider(issuer, {
    scopes: ['openid', 'offline_access', 'albert'],
    features: {
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => ({ scope: 'albert', audience: resource, accessTokenFormat: 'jwt' }),
      },
    },
    extraTokenClaims: () => ({ groups: ['engineering'] }),
  }).callback();
  console.log(issuer);
});
process.stdin.on('end', () => process.exit()).resume();
