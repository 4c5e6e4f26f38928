package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// Authority is a certificate authority of a test, with one server certificate
// for this machine.
type Authority struct {
	Pool   *x509.CertPool // trusts it
	PEM    []byte         // its certificate, for SSL_CERT_FILE
	Server tls.Certificate
}

// NewAuthority makes one. Nobody trusts it but who takes its pool.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Creel test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	rootKey, rootDER := issue(t, root, nil, nil)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	leafKey, leafDER := issue(t, leaf, root, rootKey)
	parsed, err := x509.ParseCertificate(rootDER)
	if err != nil {
		t.Fatalf("read a certificate: %v", err)
	}
	a := &Authority{
		Pool:   x509.NewCertPool(),
		PEM:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER}),
		Server: tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: leafKey},
	}
	a.Pool.AddCert(parsed)
	return a
}

// issue makes a key and a certificate for it, signed by the parent or itself.
func issue(t testing.TB, of, parent *x509.Certificate, by *ecdsa.PrivateKey) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("make a key: %v", err)
	}
	if parent == nil {
		parent, by = of, key
	}
	der, err := x509.CreateCertificate(rand.Reader, of, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatalf("make a certificate: %v", err)
	}
	return key, der
}
