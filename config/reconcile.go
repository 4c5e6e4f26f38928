package config

// Reconcile says how the list of events that a sender keeps is read, and when
// it is compared with the inbox. A preset has what is known of its sender; what
// an owner writes wins. Places are those of the path language, inside one item
// of the list; {setting.NAME} may stand in URLs.
type Reconcile struct {
	// when, and what counts
	Every   *Duration `toml:"every"`   // how often by itself; "0s" never; weekly where it is absent
	Import  bool      `toml:"import"`  // what is missing is brought in by itself too
	Types   []string  `toml:"types"`   // globs: what else the sender lists is not looked for
	Lag     *Duration `toml:"lag"`     // younger events may still come, or be listed late
	Overlap *Duration `toml:"overlap"` // how far a run goes back behind the end of the last
	Reach   Duration  `toml:"reach"`   // how far back the list goes

	// how it is asked
	URL      StringList        `toml:"url"`                     // lists that are read one after another
	Method   string            `toml:"method" oneof:"GET,POST"` // POST: the parameters are members of a JSON object
	Token    Secret            `toml:"token"`
	Headers  map[string]Secret `toml:"headers"`
	Query    map[string]string `toml:"query"` // parameters of every request; a dot leads into an object of a POST
	From     string            `toml:"from"`  // parameter of the beginning of the span
	To       string            `toml:"to"`    // and of its end
	Unit     string            `toml:"unit" oneof:"s,ms,rfc3339"`
	Size     string            `toml:"size"` // parameter of the size of a page
	PageSize int               `toml:"page_size" min:"1" max:"10000"`
	Next     string            `toml:"next" oneof:"last-id,body,link,page,time,none"` // how the next page is found
	Cursor   string            `toml:"cursor"`                                        // parameter that names the next page
	NextAt   string            `toml:"next_at"`                                       // place of the answer that names it: a URL, or the value of cursor
	More     string            `toml:"more"`                                          // place of the answer that says whether there is more
	Order    string            `toml:"order" oneof:"newest,oldest"`                   // what the list begins with
	MaxPages int               `toml:"max_pages" min:"1" max:"1000000"`
	Rate     Rate              `toml:"rate"`
	Timeout  Duration          `toml:"timeout"` // of one request

	// what an answer has in it
	Items   string            `toml:"items"`     // place of the items, as in split; with ? at its end an empty list may lack it
	Error   string            `toml:"error"`     // place of what went wrong, in an answer that says 200 all the same
	ID      string            `toml:"id"`        // of an item; where it is absent the item is the event itself
	Type    StringList        `toml:"type"`      // of an item
	At      string            `toml:"at"`        // time of an item
	Page    string            `toml:"page_id"`   // what last-id sends; id where it is absent
	Detail  string            `toml:"detail"`    // URL of the whole event, where the list has less
	Body    string            `toml:"body"`      // place of the event in the item or its detail; it may be text that is JSON
	Carried map[string]string `toml:"carried"`   // headers of the webhook, and where their values stand in the item
	Again   string            `toml:"redeliver"` // URL that asks the sender to deliver it again, by POST
}
