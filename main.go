// Command creel receives third-party webhooks, keeps them, and delivers what
// they mean. A binary with handlers of its own is these lines and, for each
// handler, a cli.Handler(name, func) as an argument of Main.
package main

import "creel/cli"

func main() {
	cli.Main()
}
