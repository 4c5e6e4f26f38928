// Package interop holds Creel against the SDKs that senders and apps really
// use: the official npm packages sign what Creel receives and verify what it
// forwards. It guarantees nothing to other rooms and none may import it. Its
// tests need npm and stand behind the build tag interop:
//
//	go test -tags interop ./internal/interop
package interop
