// Package browser looks at the operator's page as its user does: with Chromium,
// on the real binary. It guarantees nothing to anybody and nobody imports it;
// its tests need Chromium, nginx and npm, and stand behind the build tag
// browser:
//
//	go test -tags browser ./internal/browser
package browser
