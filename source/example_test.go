package source_test

import (
	"fmt"
	"time"

	"creel/config"
	"creel/source"
)

// A source is compiled of its configuration, and then says of every request
// whether it is from the sender and which events it holds.
func ExampleSource_Receive() {
	cfg := config.Source{
		Name:     "shop",
		Provider: "stripe",
		Secrets:  []config.Secret{config.NewSecret("env:STRIPE_WEBHOOK_SECRET")},
	}
	env := func(string) (string, bool) { return "whsec_9f2d1c0b7a6e5d4c3b2a190817161514", true }
	shop, problems := source.Compile(cfg, "source[0]", env)
	if err := problems.Err(); err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	draft := shop.Sample("invoice.paid", "evt_1", now)

	good, _ := shop.Sign(draft, source.Signing{At: now})
	result := shop.Receive(good, now)
	fmt.Println(result.Items[0].Key, result.Items[0].Type)

	bad, _ := shop.Sign(draft, source.Signing{At: now, Flaw: source.CorruptBody})
	fmt.Println(shop.Receive(bad, now).Cause)
	// Output:
	// shop/acct_creel_sample/evt_1 invoice.paid
	// wrong_signature
}

// A sender without a preset is described in the configuration.
func ExampleCompile_ownScheme() {
	cfg := config.Source{
		Name:    "shop",
		Secrets: []config.Secret{config.NewSecret("env:SHOP_SECRET")},
		Verify: &config.Scheme{
			Auth:      "hmac-sha256",
			Signature: config.StringList{"header.X-Shop-Signature"},
			Encoding:  "base64",
			Signed:    "{header.X-Shop-Time}.{body}",
			Timestamp: config.StringList{"header.X-Shop-Time"},
			ID:        config.StringList{"{type}/{object}"},
			Type:      config.StringList{"body.kind"},
			Object:    config.StringList{"body.order.number"},
		},
	}
	env := func(string) (string, bool) { return "a secret of more than 16 bytes", true }
	shop, problems := source.Compile(cfg, "source[0]", env)
	if err := problems.Err(); err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	signed, _ := shop.Sign(source.Draft{Body: []byte(`{"kind":"paid","order":{"number":9007199254740993}}`)}, source.Signing{At: now})
	fmt.Println(shop.Receive(signed, now).Items[0].Key)
	// Output:
	// shop//paid%2F9007199254740993
}

func ExampleContractOf() {
	contract, _ := source.ContractOf("github")
	fmt.Println(contract.Retries.Is, "-", contract.Timeout.Is)
	// Output:
	// none - 10s (30s on Enterprise Server)
}
