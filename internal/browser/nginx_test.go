//go:build browser

package browser

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"creel/internal/testkit"
)

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// nginx answers on a port and passes what is below /hooks/ on, without that.
func nginx(t *testing.T, port int, to string) {
	t.Helper()
	folder := t.TempDir()
	text := fmt.Sprintf(`
daemon off; pid nginx.pid; error_log stderr; worker_processes 1;
events { worker_connections 64; }
http {
  access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  server {
    listen 127.0.0.1:%d;
    location /hooks/ { proxy_pass %s/; proxy_set_header Host $http_host; }
  }
}`, port, to)
	file := filepath.Join(folder, "nginx.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := exec.LookPath("nginx")
	if err != nil {
		path = "/usr/sbin/nginx"
	}
	cmd := exec.Command(path, "-p", folder, "-c", file)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("start nginx (apt-get install nginx-light): %v", err)
	}
	t.Cleanup(func() {
		// nginx ends its worker itself; killed, it would leave it behind.
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	testkit.Poll(t, soon, "nginx", func() bool {
		response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/hooks/login", port))
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}
